"""What a Spark application is told, how it polls, and how its slices become files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tallystick.domain.batches.landing import LandingPlan, Scan
from tallystick.domain.batches.packing import pack
from tallystick.domain.batches.polling import MAX_POLL_RECORDS, looked_at, stretches
from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange, union_of
from tests.support.builders import ATTEMPT, BATCH, TOPIC, a_landing, a_range
from tests.support.strategies import range_lists

PLAN = a_landing(a_range(0, 5))

scans = st.builds(
    lambda ranges, count, is_split, most: Scan(
        tuple(ranges), count if is_split else None, None if is_split else count, most
    ),
    range_lists,
    st.integers(1, 9),
    st.booleans(),
    st.none() | st.integers(1, 9),
)


@given(
    st.builds(
        replace,
        st.just(PLAN),
        isolation=st.sampled_from(Isolation),
        scans=st.lists(scans, max_size=3).map(tuple),
        kafka_options=st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
        compression_level=st.none() | st.integers(1, 9),
        replication=st.none() | st.integers(1, 3),
        leader_epochs=st.dictionaries(st.integers(0, 9), st.none() | st.integers(0, 9), max_size=3),
    )
)
def test_a_landing_plan_is_read_again_as_it_was_written(plan: LandingPlan) -> None:
    # Invariant 3 of `landing`.
    text = plan.to_json()

    assert LandingPlan.from_json(text) == plan
    assert "\n" not in text


@pytest.mark.parametrize("text", ['{"format": "tallystick-landing-1"}', "{}"])
def test_another_format_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no LandingPlan: format"):
        LandingPlan.from_json(text)


@pytest.mark.parametrize(("per_file", "count"), [(None, None), (10, 1)])
def test_a_scan_is_either_split_or_packed(per_file: int | None, count: int | None) -> None:
    with pytest.raises(ValueError, match="either split or packed"):
        Scan((a_range(0, 5),), per_file, count)


def test_every_file_says_who_wrote_it() -> None:
    assert PLAN.file_prefix == f"{BATCH}-{ATTEMPT}"


def test_the_text_is_plain_json() -> None:
    document = json.loads(PLAN.to_json())

    assert document["format"] == "tallystick-landing-2"
    [scan] = document["scans"]
    assert scan["ranges"] == [
        {"partition": {"topic": TOPIC, "partition": 0}, "from_offset": 0, "until_offset": 5}
    ]
    assert document["isolation"] == "read_committed"


SPANS = (1, 2, 199, 200, 201, 2_000, 2_001, 200_000, 200_001, 3_000_000)


def polled(whole: OffsetRange, records: Sequence[int]) -> list[int]:
    """The last offset that each poll brings."""
    found = []
    for most, [part] in stretches([whole]):
        position = part.from_offset
        while position < part.until_offset:
            brought = [each for each in records if each >= position][:most]
            found.append(brought[-1])
            position = brought[-1] + 1
    return found


@given(range_lists)
def test_stretches_hold_every_offset_once(ranges: list[OffsetRange]) -> None:
    # Invariant 1 of `polling`.
    parts = [each for _, parts in stretches(ranges) for each in parts]
    assert union_of(parts) == union_of(ranges)
    assert sum(each.span for each in parts) == sum(each.span for each in ranges)


@pytest.mark.parametrize("span", SPANS)
def test_stretches_are_in_order_and_polls_get_shorter_towards_the_end(span: int) -> None:
    # Invariant 1 of `polling`.
    found = stretches([a_range(7, 7 + span)])
    assert all(a.until_offset == b.from_offset for (_, [a]), (_, [b]) in pairwise(found))
    assert [most for most, _ in found] == sorted({most for most, _ in found}, reverse=True)


@pytest.mark.parametrize("span", [each for each in SPANS if each < 3_000])
@pytest.mark.parametrize("step", [1, 2, 10])
def test_no_poll_goes_beyond_the_end(span: int, step: int) -> None:
    # Invariant 2 of `polling`.
    records = [*range(0, span, step), span - 1, *range(span, span + 50_000, step)]
    assert max(polled(a_range(0, span), sorted(set(records)))) == span - 1


@pytest.mark.parametrize("span", SPANS)
def test_a_range_takes_a_few_hundred_polls_more(span: int) -> None:
    # Invariant 3 of `polling`.
    polls = sum(-(-part.span // most) for most, [part] in stretches([a_range(0, span)]))
    assert polls <= span // MAX_POLL_RECORDS + 600


def test_records_are_looked_at_in_the_longest_ranges_only() -> None:
    ranges = [a_range(5, 5 + span, partition=span) for span in range(1, 101)]
    first, middle, last = looked_at(ranges)
    assert first == dict.fromkeys(range(69, 101), 5)
    assert middle == {span: 5 + (span - 1) // 2 for span in range(69, 101)}
    assert last == {span: 4 + span for span in range(69, 101)}


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
