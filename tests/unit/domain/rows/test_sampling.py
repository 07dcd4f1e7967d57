"""Which offsets are compared: the ends always, chance repeatable, and never more than the bound."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.rows.sampling import FIRST_SAMPLE, SampleSize, rotation_size, sampled

BATCH = BatchId("b" * 16)
ids = st.text("0123456789abcdef", min_size=16, max_size=16).map(BatchId)
spans = st.lists(st.tuples(st.integers(0, 9_999), st.integers(1, 50_000)), min_size=1, max_size=80)
sizes = st.builds(SampleSize, st.integers(2, 60), st.integers(1, 300))


def ranges(*bounds: tuple[int, int]) -> list[OffsetRange]:
    """One range of each partition, as first offset and span."""
    return [
        OffsetRange(TopicPartition("orders", number), first, first + span)
        for number, (first, span) in enumerate(bounds)
    ]


@given(batch=ids, turn=st.integers(0, 50), bounds=spans, size=sizes)
def test_slices_lie_apart_inside_the_ranges_and_are_never_too_many(
    batch: BatchId, turn: int, bounds: list[tuple[int, int]], size: SampleSize
) -> None:
    whole = ranges(*bounds)
    slices = sampled(batch, turn, whole, size)

    assert 0 < len(slices) <= size.slices
    assert sum(each.span for each in slices) <= size.offsets
    for each in slices:
        assert each.intersection(whole[each.partition.partition]) == each
    pairs = pairwise(slices)
    assert all(
        one.partition < other.partition or one.until_offset < other.from_offset
        for one, other in pairs
    )


@given(batch=ids, turn=st.integers(0, 50), bounds=spans, size=sizes)
def test_a_batch_and_a_turn_give_the_same_slices_in_whatever_order_ranges_come(
    batch: BatchId, turn: int, bounds: list[tuple[int, int]], size: SampleSize
) -> None:
    whole = ranges(*bounds)
    assert sampled(batch, turn, whole, size) == sampled(batch, turn, whole[::-1], size)


@pytest.mark.parametrize(
    ("bounds", "why"),
    [
        ([(0, 2_000_000)], "one partition"),
        ([(1_000, 300_000)] * 3, "three"),
        ([(0, 5_000)] * 6, "as many as there is room for"),
        ([(7, 1)] + [(0, 90_000)] * 3, "one record alone"),
    ],
)
def test_both_ends_of_every_range_are_compared_where_they_fit(
    bounds: list[tuple[int, int]], why: str
) -> None:
    whole = ranges(*bounds)
    slices = sampled(BATCH, 0, whole, FIRST_SAMPLE)
    for each in whole:
        mine = [one for one in slices if one.partition == each.partition]
        assert mine[0].from_offset == each.from_offset, why
        assert mine[-1].until_offset == each.until_offset, why


def test_a_small_batch_is_compared_as_a_whole() -> None:
    whole = ranges((0, 40), (3, 40), (9, 42))
    assert sampled(BATCH, 0, whole, FIRST_SAMPLE) == tuple(whole)


def test_thousands_of_partitions_cost_no_more_than_one() -> None:
    slices = sampled(BATCH, 0, ranges(*[(0, 1_000)] * 5_000), FIRST_SAMPLE)
    assert len(slices) <= FIRST_SAMPLE.slices
    other = sampled(BATCH, 1, ranges(*[(0, 1_000)] * 5_000), FIRST_SAMPLE)
    assert {each.partition for each in slices} != {each.partition for each in other}


def test_other_turns_and_other_batches_compare_other_slices() -> None:
    whole = ranges((0, 1_000_000))
    found = {sampled(BATCH, turn, whole, FIRST_SAMPLE) for turn in range(20)}
    assert len(found) == 20
    assert sampled(BatchId("c" * 16), 0, whole, FIRST_SAMPLE) not in found
    assert len({(each[0], each[-1]) for each in found}) == 1, "the ends are in each of them"


def test_nothing_is_compared_of_nothing() -> None:
    assert sampled(BATCH, 0, [], FIRST_SAMPLE) == ()


@pytest.mark.parametrize(
    ("budget", "batches", "expected"),
    [
        (100_000, 0, 100_000),
        (100_000, 1, 100_000),
        (100_000, 50, 2_000),
        (100_000, 51, 2_000),
        (500, 1, 2_000),
    ],
)
def test_a_budget_is_shared_among_batches_down_to_what_is_worth_a_visit(
    budget: int, batches: int, expected: int
) -> None:
    assert rotation_size(budget, batches).offsets == expected
