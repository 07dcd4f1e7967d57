"""Facts in, a plan out: what a run performs and a dry run shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tallystick.domain.attempts.last_copies import KeptFiles
from tallystick.domain.attempts.staged import HeldFiles, Staged
from tallystick.domain.batches.batch import BatchStatus
from tallystick.domain.batches.states import BatchState, Isolation
from tallystick.domain.deciding.decide import (
    FirstBatches,
    PlanFacts,
    PlanTerms,
    carried_out_as_frozen,
    decide,
)
from tallystick.domain.deciding.plan import FrozenPlan, Plan
from tallystick.domain.identities import BatchId, FencingToken, Owner, PlanId
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.sameness import SAME
from tallystick.domain.planning.due import PlanLimits
from tallystick.domain.planning.log_changes import Accounts, Observation
from tallystick.domain.rules.evidence import held_in
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tests.support.builders import (
    FEED,
    NOON,
    TOPIC,
    TOPIC_ID,
    a_range,
    a_snapshot,
    a_status,
    an_account,
    bounds,
    by_partition,
    planned,
)

RUN, RIVAL = Owner("run 1"), Owner("run 2")
NOTHING = Staged()
HOUR = Window(NOON - timedelta(hours=1), NOON)
TERMS = PlanTerms(
    FEED, TOPIC, "/data/landing", Isolation.READ_COMMITTED, PlanLimits(1000, 1000, 1000), None
)


def facts_of(
    *accounts: GenerationAccount,
    unfinished: tuple[BatchStatus, ...] = (),
    seen: Mapping[int, tuple[int, int]],
    window: Window | None = None,
    frozen: FrozenPlan | None = None,
    now: datetime = NOON,
    staged: Staged = NOTHING,
) -> PlanFacts:
    snapshot = a_snapshot({each: bounds(*ends) for each, ends in seen.items()})
    logs = {each.partition.partition: SAME for each in accounts}
    starts = {} if accounts else {each: start for each, (start, _) in seen.items()}
    known, look = Accounts(by_partition(*accounts), unfinished), Observation(snapshot, logs, starts)
    return PlanFacts(TERMS, window, RUN, now, frozen, known, look, staged)


def decided(facts: PlanFacts, first_batches: Mapping[int, int] | None = None) -> Plan:
    """The plan of facts by which nothing has to be asked of the time index."""
    decision = decide(facts)
    try:
        question = next(decision)
        while True:
            assert isinstance(question, FirstBatches)
            question = decision.send(first_batches or {})
    except StopIteration as told:
        plan: Plan = told.value
        return plan


def ranges(plan: Plan) -> list[list[str]]:
    return [[str(each.offsets) for each in batch.ranges] for batch in plan.batches]


def a_plan(*batches: BatchStatus, adopted: tuple[BatchStatus, ...] = ()) -> FrozenPlan:
    return FrozenPlan(PlanId(7), NOON, batches, adopted)


def test_the_first_plan_lands_what_it_opens() -> None:
    plan = decided(facts_of(seen={0: (2, 9)}))

    assert [str(each.partition) for each in plan.changes.opened] == ["orders-0"]
    assert ranges(plan) == [["orders-0 [2, 9)"]]
    assert plan.batches[0].ranges[0].generation_id < 0, "it has no id yet"
    assert plan.wanted == 7


def test_what_is_due_is_due_behind_what_the_plan_itself_loses() -> None:
    plan = decided(facts_of(an_account(frontier=2), seen={0: (5, 9)}))

    assert [str(each.offsets) for each in plan.changes.lost] == ["orders-0 [2, 5)"]
    assert len(plan.findings) == 1
    assert ranges(plan) == [["orders-0 [5, 9)"]]


def test_a_claim_that_files_may_hold_stands_and_is_told_as_unknown() -> None:
    dead = a_status(planned(2, 6))
    files = KeptFiles("/q/1", TOPIC_ID, (a_range(2, 6),))
    there = Staged([HeldFiles("/s/1", dead.plan.batch_id, "not settled.", files)])
    account = an_account(frontier=2, beyond=[(2, 6)])
    facts = facts_of(account, unfinished=(dead,), seen={0: (4, 9)}, staged=there)

    plan = decided(facts)

    assert (plan.changes.cuts, plan.changes.lost) == ((), ())
    [found] = plan.findings
    assert (found.verdict, found.from_offset, found.until_offset) == (Verdict.UNKNOWN, 2, 4)
    assert held_in(found.evidence) == {"/s/1": "not settled."}
    assert plan.adopted == (dead,)
    assert ranges(plan) == [["orders-0 [6, 9)"]], "landing goes on behind it"


def test_dead_batches_are_adopted_and_living_ones_are_held() -> None:
    dead = a_status(planned(2, 4), batch_id=BatchId("d" * 16))
    living = a_status(planned(4, 6), batch_id=BatchId("e" * 16), lease_seconds_left=60.0)
    rival = replace(living, holder=RIVAL)
    account = an_account(frontier=2, beyond=[(2, 4), (4, 6)])
    plan = decided(facts_of(account, unfinished=(dead, rival), seen={0: (0, 9)}))

    assert (plan.adopted, plan.held) == ((dead,), (rival,))
    assert ranges(plan) == [["orders-0 [6, 9)"]]


def test_the_windows_plan_is_read_again_with_what_is_left_of_its_claims() -> None:
    tried = replace(a_status(planned(2, 6)), newest_token=FencingToken(1))
    account = an_account(frontier=2, beyond=[(2, 6)])
    facts = facts_of(
        account, unfinished=(tried,), seen={0: (4, 9)}, window=HOUR, frozen=a_plan(tried)
    )
    plan = decided(facts)

    assert plan.resumed
    assert [str(each.offsets) for each in plan.resumed.batches[0].plan.ranges] == [
        "orders-0 [4, 6)"
    ]
    assert (plan.batches, plan.wanted) == ((), 0), "nothing is decided anew"
    assert [each.offsets.until_offset for each in plan.changes.cuts] == [4]


def test_a_plan_of_which_nothing_is_left_is_made_anew() -> None:
    tried = replace(a_status(planned(2, 6)), newest_token=FencingToken(1))
    account = an_account(frontier=2, beyond=[(2, 6)])
    facts = facts_of(
        account, unfinished=(tried,), seen={0: (6, 9)}, window=HOUR, frozen=a_plan(tried)
    )
    plan = decided(facts)

    assert plan.resumed is None
    assert ranges(plan) == [["orders-0 [6, 9)"]]


def test_a_batch_that_is_over_is_not_open_again_in_accounts_from_before() -> None:
    batch = a_status(planned(2, 6))
    committed = replace(batch, state=BatchState.COMMITTED)

    now = a_plan(committed).where(Accounts({}, [batch]))

    assert now.all_batches == (committed,)


@pytest.mark.parametrize(
    ("state", "token", "seconds", "is_carried_out"),
    [
        (BatchState.PLANNED, 0, 0.0, True),
        (BatchState.LANDING, 1, 60.0, True),
        (BatchState.LANDING, 1, 0.0, False),
        (BatchState.COMMITTED, 1, 0.0, False),
        (BatchState.ABANDONED, 1, 0.0, False),
    ],
)
def test_a_frozen_plan_is_carried_out_without_a_look_until_a_batch_of_it_has_failed(
    state: BatchState, token: int, seconds: float, is_carried_out: bool
) -> None:
    batch = a_status(planned(2, 6), state=state, lease_seconds_left=seconds)
    plan = a_plan(replace(batch, newest_token=FencingToken(token)))

    assert carried_out_as_frozen(plan) == (Plan(resumed=plan) if is_carried_out else None)
    assert carried_out_as_frozen(None) is None


def test_records_of_now_under_an_old_window_are_warned_of() -> None:
    account = an_account(frontier=2)
    late = NOON + timedelta(hours=1, minutes=1)
    for window, now, count in [(HOUR, late, 1), (HOUR, NOON, 0), (None, late, 0)]:
        plan = decided(facts_of(account, seen={0: (0, 9)}, window=window, now=now))
        assert len(plan.warnings) == count


@pytest.mark.parametrize(
    ("budget", "runs"),
    [
        pytest.param(9, None, id="all of it fits"),
        pytest.param(5, None, id="the next run does the rest"),
        pytest.param(3, 2, id="two more"),
        pytest.param(2, 4, id="the last one is not full"),
    ],
)
def test_a_budget_that_leaves_many_runs_says_how_many(budget: int, runs: int | None) -> None:
    facts = facts_of(an_account(frontier=0), seen={0: (0, 9)})
    limits = replace(facts.terms.limits, max_records_per_run=budget)
    plan = decided(replace(facts, terms=replace(facts.terms, limits=limits)))

    assert plan.warnings == (
        ()
        if runs is None
        else (
            f"{budget} of 9 offsets that are due fit into this run's budgets: about {runs} more"
            " runs are needed for what is there now. Set plan.max_records_per_run higher, or run"
            " more often.",
        )
    )
