"""Who holds which offsets, against brute force."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.coverage import Coverage, Held
from tallystick.domain.identities import BatchId
from tests.support.builders import a_batch, a_range, planned

BATCHES = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 30), st.integers(1, 8), st.integers(1, 2)),
    max_size=8,
)


def batch(name: str, partition: int, start: int, span: int, ordinal: int) -> BatchPlan:
    plan = a_batch(planned(start, start + span, partition=partition), ordinal=ordinal)
    return replace(plan, batch_id=BatchId(name))


@given(BATCHES, st.integers(0, 1), st.integers(0, 30), st.integers(1, 20), st.integers(1, 2))
def test_the_newest_holder_of_each_offset_is_found(
    batches: list[tuple[int, int, int, int]], partition: int, start: int, span: int, ordinal: int
) -> None:
    plans = [batch(f"b{number}", *each) for number, each in enumerate(batches)]
    holders: dict[tuple[int, int, int], BatchId] = {}
    for plan in plans:
        for each in plan.ranges:
            for offset in range(each.offsets.from_offset, each.offsets.until_offset):
                key = (each.offsets.partition.partition, plan.ordinal, offset)
                holders[key] = plan.batch_id
    asked = batch("asked", partition, start, span, ordinal)
    found = {
        offset: each.batch_id
        for each in Coverage(plans).held(asked)
        for offset in range(each.offsets.from_offset, each.offsets.until_offset)
    }
    expected = {
        offset: holders[partition, ordinal, offset]
        for offset in range(start, start + span)
        if (partition, ordinal, offset) in holders
    }
    assert found == expected


def test_what_is_held_comes_in_order_and_exactly() -> None:
    coverage = Coverage([batch("b2", 0, 10, 10, 1), batch("b1", 0, 0, 5, 1)])
    assert coverage.held(batch("new", 0, 3, 9, 1)) == [
        Held(a_range(3, 5), 1, BatchId("b1")),
        Held(a_range(10, 12), 1, BatchId("b2")),
    ]


def test_two_lives_of_a_log_share_no_offset() -> None:
    coverage = Coverage([batch("b1", 0, 0, 5, 1)])
    assert coverage.held(batch("b2", 0, 0, 5, 2)) == []
