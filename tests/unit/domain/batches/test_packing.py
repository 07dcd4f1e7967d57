"""Slices become files: each slice once, few files for many small slices. The numbers: packing's."""

from __future__ import annotations

from math import ceil

from hypothesis import example, given
from hypothesis import strategies as st

from tallystick.domain.batches.landing import Scan
from tallystick.domain.batches.packing import pack
from tallystick.domain.offsets.ranges import OffsetRange
from tests.support.builders import a_range

TARGET_BYTES = 128 * 1024 * 1024
BYTES_PER_RECORD = 100.0
TARGET_RECORDS = int(TARGET_BYTES / BYTES_PER_RECORD)

spans = st.lists(st.integers(0, 24).map(lambda bits: 3 * 2**bits // 4 + 1), max_size=500)


def _slices(spans: list[int]) -> list[OffsetRange]:
    return [a_range(0, span, partition=number) for number, span in enumerate(spans)]


def _packed(slices: list[OffsetRange]) -> tuple[Scan, ...]:
    return pack(slices, bytes_per_record=BYTES_PER_RECORD, target_file_bytes=TARGET_BYTES)


@given(spans)
def test_every_slice_is_in_exactly_one_scan(spans: list[int]) -> None:
    # Invariant 1 of `packing`.
    slices = _slices(spans)

    assert sorted(each for scan in _packed(slices) for each in scan.ranges) == sorted(slices)


@given(spans)
@example([2**15] * 500)
def test_no_file_grows_far_beyond_the_target(spans: list[int]) -> None:
    # Invariant 2 of `packing`.
    for scan in _packed(_slices(spans)):
        if scan.file_count is None:
            assert scan.max_records_per_file == TARGET_RECORDS
            continue
        assert 1 <= scan.file_count <= len(scan.ranges)
        # Spark gives every file as many slices; in the worst case it gives one the largest ones.
        share = ceil(len(scan.ranges) / scan.file_count)
        largest = sorted(each.span for each in scan.ranges)[-share:]
        assert sum(largest) <= 4.5 * TARGET_RECORDS


@given(spans)
def test_there_are_hardly_more_files_than_the_bytes_need(spans: list[int]) -> None:
    scans = _packed(_slices(spans))
    packed = sum(scan.file_count or 0 for scan in scans)
    small = sum(each.span for scan in scans if scan.file_count for each in scan.ranges)

    assert packed <= small / TARGET_RECORDS + 4
    assert len(scans) <= 5


def test_two_thousand_nearly_idle_partitions_land_in_one_file() -> None:
    (scan,) = _packed(_slices([3] * 2_000))

    assert (len(scan.ranges), scan.file_count) == (2_000, 1)


def test_a_slice_of_half_a_file_is_written_alone() -> None:
    (scan,) = _packed(_slices([TARGET_RECORDS // 2 + 1]))

    assert (scan.file_count, scan.max_records_per_file) == (None, TARGET_RECORDS)


def test_nothing_needs_no_scan() -> None:
    assert _packed([]) == ()


def test_rows_larger_than_a_file_are_written_one_by_one() -> None:
    (scan,) = pack(_slices([5]), bytes_per_record=2e9, target_file_bytes=TARGET_BYTES)

    assert scan.max_records_per_file == 1
