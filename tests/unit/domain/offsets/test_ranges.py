"""The algebra of ranges against sets of integers. The numbers are the module's invariants."""

from __future__ import annotations

from collections import Counter
from itertools import chain, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.offsets.ranges import (
    OffsetRange,
    TopicPartition,
    frontier_of,
    offset_range,
    overlaps_in,
    subtract,
    union_of,
)
from tests.support.builders import a_partition, a_range
from tests.support.strategies import REACH, offset_ranges, offsets_in, range_lists, small_offsets


@pytest.mark.parametrize(("from_offset", "until_offset"), [(5, 5), (6, 5), (-1, 5), (-2, -1)])
def test_a_range_is_never_empty_nor_negative(from_offset: int, until_offset: int) -> None:
    # Invariant 1 of `ranges`.
    with pytest.raises(ValueError, match="is no range"):
        a_range(from_offset, until_offset)


def test_a_partition_is_never_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        TopicPartition("orders", -1)


def test_an_empty_range_is_none() -> None:
    assert offset_range(a_partition(), 5, 5) is None
    assert offset_range(a_partition(), 6, 5) is None
    assert offset_range(a_partition(), 5, 6) == a_range(5, 6)


def test_a_range_reads_as_half_open() -> None:
    assert str(a_range(5, 8, partition=3)) == "orders-3 [5, 8)"


@given(offset_ranges(), small_offsets)
def test_a_range_holds_its_first_offset_and_not_its_until(each: OffsetRange, offset: int) -> None:
    partition = each.partition.partition

    assert (offset in each) == ((partition, offset) in offsets_in([each]))
    assert each.span == len(offsets_in([each]))


@given(offset_ranges(), offset_ranges())
def test_an_intersection_holds_what_both_hold(one: OffsetRange, other: OffsetRange) -> None:
    shared = one.intersection(other)

    assert offsets_in([shared] if shared else []) == offsets_in([one]) & offsets_in([other])
    assert shared == other.intersection(one)


@given(offset_ranges(), small_offsets, small_offsets)
def test_clipping_keeps_what_is_inside(each: OffsetRange, lower: int, upper: int) -> None:
    kept = each.clipped(lower, upper)
    inside = {(p, o) for p, o in offsets_in([each]) if lower <= o < upper}

    assert offsets_in([kept] if kept else []) == inside


@given(range_lists)
def test_a_union_holds_every_offset_once(ranges: list[OffsetRange]) -> None:
    union = union_of(ranges)

    assert offsets_in(union) == offsets_in(ranges)
    assert sum(each.span for each in union) == len(offsets_in(ranges))
    assert all(_leaves_room(one, other) for one, other in pairwise(union))


def _leaves_room(one: OffsetRange, other: OffsetRange) -> bool:
    return one.partition < other.partition or one.until_offset < other.from_offset


@given(offset_ranges(), range_lists)
def test_gaps_and_coverage_partition_what_is_wanted(
    wanted: OffsetRange, covered: list[OffsetRange]
) -> None:
    gaps = subtract(wanted, covered)

    assert offsets_in(gaps) == offsets_in([wanted]) - offsets_in(covered)
    assert all(_leaves_room(one, other) for one, other in pairwise(gaps))


@given(range_lists)
def test_overlaps_are_the_offsets_held_twice(ranges: list[OffsetRange]) -> None:
    # Invariant 2 of `ranges`.
    times = Counter(chain.from_iterable(offsets_in([each]) for each in ranges))
    twice = {place for place, count in times.items() if count > 1}

    assert offsets_in(overlaps_in(ranges)) == twice
    total = sum(each.span for each in ranges)
    assert bool(twice) == (total > sum(each.span for each in union_of(ranges)))


@given(small_offsets, st.lists(offset_ranges(partitions=1), max_size=8))
def test_the_frontier_is_the_first_offset_that_nothing_holds(
    first: int, ranges: list[OffsetRange]
) -> None:
    # Invariant 3 of `ranges`.
    held = {offset for _, offset in offsets_in(ranges)}
    missing = next(offset for offset in range(first, 2 * REACH) if offset not in held)

    assert frontier_of(first, ranges) == missing


def test_a_range_beyond_a_gap_does_not_move_the_frontier() -> None:
    # Invariant 3 of `ranges`.
    assert frontier_of(0, [a_range(0, 5), a_range(8, 9)]) == 5


def test_other_partitions_cover_nothing() -> None:
    assert subtract(a_range(0, 5), [a_range(0, 5, partition=1)]) == (a_range(0, 5),)
