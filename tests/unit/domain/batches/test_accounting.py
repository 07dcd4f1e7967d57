"""Level L0, offset by offset, against sets of integers. The numbers are the module's invariants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.batches.accounting import accounted, holes_in, problems_in, unexplained_in
from tallystick.domain.batches.landed import ReadBack
from tallystick.domain.batches.manifest import TailAnchor
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.offsets.runs import OffsetRuns
from tests.support.builders import ANCHOR_HASH, planned, read_back_of
from tests.support.strategies import offset_ranges, offset_runs, pair_lists

landed_maps = st.dictionaries(st.integers(0, 2), pair_lists, max_size=3)


def _members(runs: OffsetRuns) -> set[int]:
    return {offset for a, b in runs for offset in range(a, b)}


@given(offset_ranges(), landed_maps)
def test_landed_and_holes_partition_every_planned_range(
    offsets: OffsetRange, landed: dict[int, list[tuple[int, int]]]
) -> None:
    # Invariant 1 of `accounting`.
    partition = offsets.partition.partition
    wanted = planned(offsets.from_offset, offsets.until_offset, partition=partition)
    (range_holes,) = holes_in([wanted], read_back_of(landed))
    there = _members(OffsetRuns.of(landed.get(partition, [])))
    span = set(range(offsets.from_offset, offsets.until_offset))

    assert _members(range_holes.landed) == span & there
    assert _members(range_holes.holes) == span - there
    assert range_holes.planned == wanted


@given(offset_ranges(), landed_maps, landed_maps)
def test_problems_are_what_is_there_twice_or_was_never_planned(
    offsets: OffsetRange,
    landed: dict[int, list[tuple[int, int]]],
    doubled: dict[int, list[tuple[int, int]]],
) -> None:
    # Invariant 2 of `accounting`.
    ours = offsets.partition.partition
    wanted = planned(offsets.from_offset, offsets.until_offset, partition=ours)
    found = read_back_of(landed, doubled)
    span = set(range(offsets.from_offset, offsets.until_offset))
    strange = {
        partition
        for partition, runs in found.landed.items()
        if _members(runs) - (span if partition == ours else set())
    }
    twice = {partition for partition, runs in found.doubled.items() if runs}

    assert len(problems_in([wanted], found)) == len(strange) + len(twice)


@given(
    offset_ranges(partitions=1),
    offset_runs,
    st.dictionaries(st.sampled_from(HoleClass), offset_runs),
)
def test_what_no_class_explains_is_unexplained(
    offsets: OffsetRange, landed: OffsetRuns, explained: dict[HoleClass, OffsetRuns]
) -> None:
    # Invariant 2 of `accounting`.
    found = ReadBack((), {0: landed}, {})
    (range_holes,) = holes_in([planned(offsets.from_offset, offsets.until_offset)], found)
    known = set().union(*(_members(runs) for runs in explained.values()))

    assert _members(unexplained_in(range_holes, explained)) == _members(range_holes.holes) - known


# What was landed of [0, 10), what is there twice, and every problem with its words.
CASES = [
    ("all there", {0: [(0, 10)]}, {}, []),
    ("a hole is no problem yet", {0: [(0, 9)]}, {}, []),
    ("nothing there", {}, {}, []),
    (
        "one twice",
        {0: [(0, 10)]},
        {0: [(3, 4)]},
        ["partition 0: offsets 3 are there more than once"],
    ),
    ("one too many", {0: [(0, 11)]}, {}, ["partition 0: offsets 10 were not planned"]),
    (
        "another partition",
        {0: [(0, 10)], 7: [(0, 2)]},
        {},
        ["partition 7: offsets [0, 2) were not planned"],
    ),
    (
        "both",
        {0: [(0, 12)]},
        {0: [(0, 2), (5, 6)]},
        [
            "partition 0: offsets [0, 2), 5 are there more than once",
            "partition 0: offsets [10, 12) were not planned",
        ],
    ),
]


@pytest.mark.parametrize(
    ("landed", "doubled", "expected"), [pytest.param(*rest, id=name) for name, *rest in CASES]
)
def test_problems_in_words(
    landed: dict[int, list[tuple[int, int]]],
    doubled: dict[int, list[tuple[int, int]]],
    expected: list[str],
) -> None:
    assert list(problems_in([planned(0, 10)], read_back_of(landed, doubled))) == expected


def test_a_range_is_accounted_for_when_every_hole_has_a_cause() -> None:
    # Invariant 1 of `accounting`.
    (range_holes,) = holes_in([planned(0, 10)], read_back_of({0: [(0, 8)]}))
    explained = {
        HoleClass.CONTROL: OffsetRuns.of([(9, 10)]),
        HoleClass.ABORTED: OffsetRuns.of([(8, 9)]),
        HoleClass.COMPACTED: OffsetRuns(),
    }
    anchor = TailAnchor(7, 0, ANCHOR_HASH)

    proof = accounted(range_holes, explained, anchor)

    assert (proof.record_count, proof.hole_count, proof.anchor) == (8, 2, anchor)
    assert HoleClass.COMPACTED not in proof.holes


def test_a_range_with_an_unexplained_hole_is_never_accounted_for() -> None:
    # Invariant 1 of `accounting`.
    (range_holes,) = holes_in([planned(0, 10)], read_back_of({0: [(0, 8)]}))

    with pytest.raises(ValueError, match="1 offsets unaccounted for"):
        accounted(range_holes, {HoleClass.CONTROL: OffsetRuns.of([(9, 10)])}, None)
