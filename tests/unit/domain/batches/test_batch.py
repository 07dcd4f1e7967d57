"""A batch: its ranges, ids and states, who may take it, and who holds which offsets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.batches.batch import BatchPlan, CommittedFile
from tallystick.domain.batches.coverage import Coverage, Held
from tallystick.domain.batches.states import TRANSITIONS, BatchState, Isolation
from tallystick.domain.batches.taking import Beginning, beginning, is_free_for, may_be_adopted
from tallystick.domain.identities import BatchId, FencingToken, Owner, attempt_id, batch_id
from tallystick.domain.logs.snapshot import PartitionBounds
from tests.support.builders import BATCH, NOON, a_batch, a_range, a_status, planned


def test_two_ranges_of_one_partition_are_refused() -> None:
    # Invariant 1 of `BatchPlan`.
    with pytest.raises(ValueError, match="two ranges of one partition"):
        a_batch(planned(0, 5), planned(7, 9))


@pytest.mark.parametrize(
    "label",
    [NOON.replace(tzinfo=None), NOON.astimezone(timezone(timedelta(hours=1)))],
    ids=["naive", "elsewhere"],
)
def test_a_label_that_is_not_in_utc_is_refused(label: datetime) -> None:
    with pytest.raises(ValueError, match="is not in UTC"):
        a_batch(planned(0, 5), label=label)


def test_the_span_is_that_of_all_ranges() -> None:
    assert a_batch(planned(0, 5), planned(7, 9, partition=1)).span == 7


@pytest.mark.parametrize("make", [batch_id, attempt_id])
@pytest.mark.parametrize("text", ["0123456789abcdef", "0" * 32, "f" * 20])
def test_an_id_is_lower_case_hexadecimal(make: Callable[[str], str], text: str) -> None:
    assert make(text) == text


@pytest.mark.parametrize("make", [batch_id, attempt_id])
@pytest.mark.parametrize(
    "text", ["", "0" * 15, "0" * 33, "0123456789ABCDEF", "../0123456789ab", "0" * 16 + "\n"]
)
def test_anything_else_is_no_id(make: Callable[[str], str], text: str) -> None:
    with pytest.raises(ValueError, match="16 to 32 hexadecimal characters"):
        make(text)


# State, can still be landed, committed, over.
STATES = [
    (BatchState.PLANNED, True, False, False),
    (BatchState.LANDING, True, False, False),
    (BatchState.VERIFIED, True, False, False),
    (BatchState.COMMITTED, False, True, False),
    (BatchState.PUBLISHED, False, True, True),
    (BatchState.ABANDONED, False, False, True),
]


@pytest.mark.parametrize(("state", "is_unfinished", "is_committed", "is_over"), STATES)
def test_every_state_says_what_it_means(
    state: BatchState, is_unfinished: bool, is_committed: bool, is_over: bool
) -> None:
    assert state.is_unfinished is is_unfinished
    assert state.is_committed is is_committed
    assert state.is_over is is_over


def test_every_state_has_a_row() -> None:
    assert [state for state, _, _, _ in STATES] == list(BatchState)


def _reachable(first: BatchState) -> set[BatchState]:
    reached = {first}
    while more := {after for before, after in TRANSITIONS if before in reached} - reached:
        reached |= more
    return reached


def test_every_state_is_reached_from_planned() -> None:
    assert _reachable(BatchState.PLANNED) == set(BatchState)


def test_nothing_leaves_an_end() -> None:
    ends = {state for state in BatchState if state.is_over}

    assert not {before for before, _ in TRANSITIONS} & ends


def test_every_unfinished_state_can_end() -> None:
    ends = {state for state in BatchState if state.is_over}

    assert all(_reachable(state) & ends for state in BatchState)


def test_a_commit_is_never_taken_back() -> None:
    assert _reachable(BatchState.COMMITTED) == {BatchState.COMMITTED, BatchState.PUBLISHED}


def test_only_what_is_verified_commits() -> None:
    before_commit = {before for before, after in TRANSITIONS if after is BatchState.COMMITTED}

    assert before_commit == {BatchState.VERIFIED}


def test_readable_until_follows_the_isolation_level() -> None:
    bounds = PartitionBounds(0, high_watermark=9, last_stable_offset=7, leader_epoch=None)

    assert bounds.readable_until(Isolation.READ_COMMITTED) == 7
    assert bounds.readable_until(Isolation.READ_UNCOMMITTED) == 9


RUN, RIVAL = Owner("run 1"), Owner("run 2")


@pytest.mark.parametrize(
    ("holder", "seconds", "free_for"),
    [
        (None, 0.0, {RUN, RIVAL, None}),
        (RUN, 0.0, {RUN, RIVAL, None}),
        (RUN, -5.0, {RUN, RIVAL, None}),
        (RUN, 0.1, {RUN}),
        (None, 0.1, set()),
    ],
)
def test_a_batch_is_free_unless_the_lease_of_another_owner_runs(
    holder: Owner | None, seconds: float, free_for: set[Owner | None]
) -> None:
    found = {each for each in (RUN, RIVAL, None) if is_free_for(each, holder, seconds)}
    assert found == free_for


def test_a_plan_adopts_what_is_unfinished_and_free() -> None:
    living = a_status(planned(2, 4), lease_seconds_left=60.0)
    dead = a_status(planned(2, 4))

    assert may_be_adopted(dead, None)
    assert may_be_adopted(living, RUN), "an earlier try of this run holds it"
    assert not may_be_adopted(living, RIVAL)
    assert not may_be_adopted(living, None)
    assert not may_be_adopted(replace(dead, state=BatchState.COMMITTED), RUN)


def test_nobody_takes_over_that_a_person_gives_files_up() -> None:
    dead = a_status()
    give_up = replace(dead, plan=replace(dead.plan, replaces=(CommittedFile(BATCH, "a.parquet"),)))

    assert not may_be_adopted(give_up, RUN)


@pytest.mark.parametrize(
    ("state", "known", "is_free", "answer"),
    [
        (BatchState.PLANNED, None, True, Beginning.NEW),
        (BatchState.LANDING, None, True, Beginning.NEW),
        (BatchState.VERIFIED, None, True, Beginning.NEW),
        (BatchState.LANDING, None, False, Beginning.BUSY),
        (BatchState.LANDING, 3, True, Beginning.AGAIN),
        (BatchState.VERIFIED, 3, False, Beginning.AGAIN),
        (BatchState.LANDING, 2, True, Beginning.FENCED),
        (BatchState.LANDING, 2, False, Beginning.FENCED),
        (BatchState.COMMITTED, 2, True, Beginning.FENCED),
        (BatchState.COMMITTED, 3, True, Beginning.OVER),
        (BatchState.PUBLISHED, None, True, Beginning.OVER),
        (BatchState.ABANDONED, None, False, Beginning.OVER),
    ],
)
def test_what_becomes_of_an_attempt(
    state: BatchState, known: int | None, is_free: bool, answer: Beginning
) -> None:
    token = None if known is None else FencingToken(known)
    assert beginning(state, FencingToken(3), token, is_free=is_free) is answer


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
