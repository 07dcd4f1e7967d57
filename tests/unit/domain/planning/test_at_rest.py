"""Logs at rest are set apart: a plan that never sees them decides what it would decide with them.

The numbers are the invariants of `at_rest`.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.attempts.asked import Asked
from tallystick.domain.batches.batch import BatchStatus
from tallystick.domain.batches.states import Isolation
from tallystick.domain.deciding.decide import PlanFacts, PlanTerms, decide
from tallystick.domain.deciding.plan import Plan
from tallystick.domain.identities import BatchId, FeedName
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.sameness import SAME, UNKNOWN, LogCheck, Sameness
from tallystick.domain.logs.snapshot import PartitionBounds
from tallystick.domain.planning.at_rest import put_together, set_apart
from tallystick.domain.planning.danger import danger_in
from tallystick.domain.planning.due import PlanLimits
from tallystick.domain.planning.log_changes import Accounts, Observation
from tallystick.domain.window import Window
from tests.support.builders import (
    TOPIC,
    TOPIC_ID,
    a_snapshot,
    a_status,
    an_account,
    bounds,
    by_partition,
    planned,
)

COMMITTED, UNCOMMITTED = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
HOUR = Window(NOON - timedelta(hours=1), NOON)
CUT = LogCheck(Sameness.CUT, 4)
RESTING = replace(an_account(frontier=9, anchor_offset=8), seen_epoch=0)


def names_at_rest(
    account: GenerationAccount, shown: PartitionBounds, *unfinished: BatchStatus
) -> set[int]:
    """Which of two logs are set apart; log 1 rests, and is the one that stays where both rest."""
    other = replace(RESTING, partition=an_account(partition=1).partition, ordinal=2)
    accounts = Accounts(by_partition(account, other), unfinished)
    _, snapshot = set_apart(accounts, a_snapshot({0: shown, 1: bounds(0, 9)}), COMMITTED)
    return set(snapshot.at_rest)


def test_a_log_at_rest_is_set_apart() -> None:
    assert names_at_rest(RESTING, bounds(0, 9)) == {0}
    assert names_at_rest(RESTING, bounds(9, 9)) == {0}
    assert names_at_rest(RESTING, bounds(0, 9, last_stable_offset=4)) == {0}
    assert names_at_rest(replace(RESTING, anchor=None), bounds(0, 9)) == {0}


@pytest.mark.parametrize(
    ("account", "shown"),
    [
        pytest.param(RESTING, bounds(0, 10), id="it has grown"),
        pytest.param(RESTING, bounds(0, 8), id="it is shorter"),
        pytest.param(RESTING, bounds(0, 9, leader_epoch=1), id="another term"),
        pytest.param(RESTING, bounds(0, 9, leader_epoch=None), id="no term"),
        pytest.param(
            replace(RESTING, seen_epoch=None), bounds(0, 9, leader_epoch=None), id="no epochs"
        ),
        pytest.param(replace(RESTING, frontier=8), bounds(0, 9), id="something is due"),
        pytest.param(
            replace(RESTING, frontier=8),
            bounds(9, 9),
            id="something has expired",
        ),
        pytest.param(
            replace(an_account(frontier=5, beyond=[(7, 9)]), seen_epoch=0),
            bounds(0, 9, last_stable_offset=5),
            id="something is claimed",
        ),
        pytest.param(
            replace(RESTING, state=GenerationState.STOPPED), bounds(0, 9), id="it is stopped"
        ),
        pytest.param(replace(RESTING, topic_id="other"), bounds(0, 9), id="another topic id"),
        pytest.param(replace(RESTING, cluster_id="other"), bounds(0, 9), id="another cluster"),
    ],
)
def test_what_a_plan_has_to_decide_about_is_not_at_rest(
    account: GenerationAccount, shown: PartitionBounds
) -> None:
    assert 0 not in names_at_rest(account, shown)


def test_a_log_of_which_a_batch_is_to_replace_offsets_is_not_at_rest() -> None:
    """Invariant 2."""
    assert names_at_rest(RESTING, bounds(0, 9), a_status(planned(2, 5))) == set()


def test_one_log_stays_and_tells_the_newest_life_of_the_topic() -> None:
    logs = [
        replace(RESTING, partition=an_account(partition=each).partition, ordinal=1 + (each == 2))
        for each in range(4)
    ]
    snapshot = a_snapshot(dict.fromkeys(range(4), bounds(0, 9)))
    accounts, narrowed = set_apart(Accounts(by_partition(*logs), ()), snapshot, COMMITTED)
    assert list(accounts.generations) == list(narrowed.partitions) == [2]
    assert narrowed.all_partitions == snapshot.partitions
    assert put_together(Observation(narrowed, {2: SAME}, {})) == Observation(
        snapshot, dict.fromkeys(range(4), SAME), {}
    )


@st.composite
def logs(draw: st.DrawFn, partition: int) -> tuple[GenerationAccount, PartitionBounds | None]:
    """A log that rests, or one with news of some kind, and what the broker shows of it."""
    end = draw(st.integers(1, 12))
    resting = replace(an_account(partition=partition, frontier=end), seen_epoch=0)
    start = draw(st.integers(0, end))
    if draw(st.booleans()):
        return resting, bounds(start, end, last_stable_offset=draw(st.integers(start, end)))
    account = replace(
        resting,
        frontier=draw(st.integers(0, end)),
        state=draw(st.sampled_from(GenerationState)),
        topic_id=draw(st.sampled_from([TOPIC_ID] * 4 + ["topic-id-0"])),
        ordinal=draw(st.integers(1, 2)),
        seen_epoch=draw(st.sampled_from([None, 0, 1])),
    )
    grown = draw(st.integers(start, 14))
    shown = bounds(start, grown, leader_epoch=draw(st.sampled_from([None, 0, 1])))
    return account, draw(st.sampled_from([shown, shown, shown, None]))


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Accounts, Observation, Isolation]:
    drawn = [draw(logs(each)) for each in range(draw(st.integers(1, 5)))]
    unfinished = [
        a_status(
            planned(0, account.frontier, partition=number),
            batch_id=BatchId(f"{number:016x}"),
            lease_seconds_left=draw(st.sampled_from([60.0, 0.0])),
        )
        for number, (account, _) in enumerate(drawn)
        if account.frontier and draw(st.integers(0, 5)) == 0
    ]
    new = {len(drawn): bounds(0, 3)} if draw(st.booleans()) else {}
    seen = {number: shown for number, (_, shown) in enumerate(drawn) if shown} | new
    isolation = draw(st.sampled_from(Isolation))
    accounts = Accounts(by_partition(*(account for account, _ in drawn)), unfinished)
    _, narrowed = set_apart(accounts, a_snapshot(seen), isolation)
    checks = {
        number: SAME
        if number in narrowed.at_rest
        else draw(st.sampled_from([SAME, SAME, UNKNOWN, CUT]))
        for number, (account, shown) in enumerate(drawn)
        if shown and account.state is GenerationState.OPEN and account.topic_id == TOPIC_ID
    }
    return accounts, Observation(a_snapshot(seen), checks, {}), isolation


def decided(
    accounts: Accounts, seen: Observation, isolation: Isolation, window: Window | None
) -> Plan:
    terms = PlanTerms(FeedName("orders"), TOPIC, isolation, PlanLimits(20, 7, 2), None)
    look = danger_in(accounts, seen, isolation)
    asked = Asked() if look.is_to_be_asked() else None
    decision = decide(PlanFacts(terms, window, None, NOON, None, look, asked))
    try:
        next(decision)
        while True:  # where a log's first batch begins: nobody can tell
            decision.send({})
    except StopIteration as ended:
        plan: Plan = ended.value
        return plan


@given(worlds(), st.sampled_from([None, HOUR]))
def test_a_plan_without_the_logs_at_rest_is_the_plan(
    world: tuple[Accounts, Observation, Isolation], window: Window | None
) -> None:
    """Invariant 3."""
    accounts, seen, isolation = world
    left, narrowed = set_apart(accounts, seen.snapshot, isolation)
    checks = {each: check for each, check in seen.logs.items() if each not in narrowed.at_rest}
    apart = Observation(narrowed, checks, {})
    whole = decided(accounts, seen, isolation, window)
    plan = decided(left, apart, isolation, window)
    assert replace(plan, look=seen.snapshot) == whole
    assert put_together(apart) == seen
    look = danger_in(left, apart, isolation)
    assert replace(look, accounts=accounts, seen=seen) == danger_in(accounts, seen, isolation)
