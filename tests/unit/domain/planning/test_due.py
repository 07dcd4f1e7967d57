"""A plan against brute force: sets of offsets. The numbers are the module's invariants."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.batches.states import Isolation
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.planning.due import (
    MOST_BATCHES,
    PlanLimits,
    RunPlan,
    beyond_budgets,
    due_offsets,
    plan_run,
    wanted_offsets,
)
from tests.support.builders import a_range, a_snapshot, an_account, bounds, by_partition, planned
from tests.support.strategies import offsets_in

UNLIMITED = PlanLimits(10**12, 10**12, 10**6)
REACH = 40


@dataclass(frozen=True)
class Given:
    """Everything that a plan is made from."""

    generations: Mapping[int, GenerationAccount]
    snapshot: BrokerSnapshot
    isolation: Isolation
    cuts: Mapping[int, int | None] | None

    def plan(
        self, limits: PlanLimits = UNLIMITED, first_batches: Mapping[int, int] | None = None
    ) -> RunPlan:
        wanted = wanted_offsets(
            self.generations, self.snapshot, isolation=self.isolation, cuts=self.cuts
        )
        due = due_offsets(wanted, limits, first_batches)
        return plan_run(self.generations, due, limits=limits)

    def wanted(self) -> set[tuple[int, int]]:
        """Every (partition, offset) that is due and that nobody has: said once more, slowly."""
        return {
            (partition, offset)
            for partition, account in self.generations.items()
            for offset in range(2 * REACH)
            if self._is_due(account, partition, offset)
        }

    def _is_due(self, account: GenerationAccount, partition: int, offset: int) -> bool:
        now = self.snapshot.partitions.get(partition)
        if now is None or account.state is not GenerationState.OPEN:
            return False
        if account.topic_id != self.snapshot.topic_id:
            return False
        cut = (self.cuts or {}).get(partition)
        is_readable = now.log_start_offset <= offset < now.readable_until(self.isolation)
        is_late = cut is not None and offset >= cut
        is_had = offset < account.frontier or any(offset in each for each in account.beyond)
        return is_readable and not is_late and not is_had


@st.composite
def accounts(draw: st.DrawFn, partition: int) -> GenerationAccount:
    marks = sorted(draw(st.sets(st.integers(0, REACH), min_size=1, max_size=7)))
    frontier, rest = marks[0], marks[1:]
    return an_account(
        partition=partition,
        frontier=frontier,
        beyond=list(zip(rest[::2], rest[1::2], strict=False)),
        state=draw(st.sampled_from([GenerationState.OPEN] * 4 + [GenerationState.STOPPED])),
        ordinal=draw(st.integers(1, 2)),
        topic_id=draw(st.sampled_from(["topic-id-1"] * 4 + ["topic-id-0"])),
    )


@st.composite
def givens(draw: st.DrawFn) -> Given:
    partitions = range(draw(st.integers(0, 4)))
    seen = draw(st.sets(st.integers(0, 4)))
    offsets = st.lists(st.integers(0, REACH), min_size=3, max_size=3).map(sorted)
    drawn = {partition: draw(offsets) for partition in seen}
    snapshot = a_snapshot({p: bounds(a, c, last_stable_offset=b) for p, (a, b, c) in drawn.items()})
    cuts = st.dictionaries(st.integers(0, 4), st.none() | st.integers(0, REACH))
    return Given(
        by_partition(*(draw(accounts(partition)) for partition in partitions)),
        snapshot,
        draw(st.sampled_from(Isolation)),
        draw(st.none() | cuts),
    )


limits = st.builds(PlanLimits, st.integers(1, 60), st.integers(1, 20), st.integers(1, 4))


def _offsets_of(plan: RunPlan) -> list[tuple[int, int]]:
    ranges = [each.offsets for batch in plan.batches for each in batch.ranges]
    return [place for each in ranges for place in sorted(offsets_in([each]))]


@given(givens(), limits)
def test_a_plan_never_leaves_its_bounds_nor_takes_what_somebody_has(
    given: Given, limits: PlanLimits
) -> None:
    # Invariant 1 of `due`.
    offsets = _offsets_of(given.plan(limits))

    assert set(offsets) <= given.wanted()
    assert len(offsets) == len(set(offsets))


@given(givens())
def test_without_a_budget_in_the_way_everything_wanted_is_planned(given: Given) -> None:
    # Invariant 2 of `due`.
    plan = given.plan()

    assert set(_offsets_of(plan)) == given.wanted()
    assert plan.planned == plan.wanted == len(given.wanted())


@given(givens(), limits)
def test_the_budget_is_used_up_to_the_last_offset(given: Given, limits: PlanLimits) -> None:
    # Invariant 4 of `due`.
    plan = given.plan(limits)

    assert plan.wanted == len(given.wanted())
    assert plan.planned == min(plan.wanted, limits.max_records_per_run)


@given(givens(), limits)
def test_a_batch_keeps_to_its_limits_and_to_one_life_of_the_topic(
    given: Given, limits: PlanLimits
) -> None:
    # Invariant 3 of `due`.
    for batch in given.plan(limits).batches:
        ranges = [each.offsets for each in batch.ranges]
        owners = [given.generations[each.partition.partition] for each in ranges]

        assert 1 <= len(ranges) <= limits.max_partitions_per_batch
        assert len({each.partition for each in ranges}) == len(ranges)
        assert sum(each.span for each in ranges) <= limits.max_records_per_batch
        assert {each.ordinal for each in owners} == {batch.ordinal}
        assert [each.generation_id for each in batch.ranges] == [o.generation_id for o in owners]


@given(givens(), limits)
def test_every_partition_gets_its_oldest_offsets_first(given: Given, limits: PlanLimits) -> None:
    taken: defaultdict[int, list[int]] = defaultdict(list)
    for partition, offset in _offsets_of(given.plan(limits)):
        taken[partition].append(offset)

    for partition, offsets in taken.items():
        due = sorted(offset for p, offset in given.wanted() if p == partition)
        assert offsets == due[: len(offsets)]


@given(givens(), limits)
def test_a_partition_that_is_cut_has_no_richer_neighbour(given: Given, limits: PlanLimits) -> None:
    needs = Counter(partition for partition, _ in given.wanted())
    shares = Counter(partition for partition, _ in _offsets_of(given.plan(limits)))
    cut = [shares[partition] for partition, need in needs.items() if shares[partition] < need]

    assert all(share <= min(cut, default=share) + 1 for share in shares.values())


def test_no_partition_waits_for_ever_for_a_budget_that_is_too_small() -> None:
    # Seven partitions grow by one offset each run, and a run lands two.
    frontiers, served = dict.fromkeys(range(7), 0), []
    for until in range(1, 71):
        given = Given(
            by_partition(*(an_account(partition=p, frontier=f) for p, f in frontiers.items())),
            a_snapshot(dict.fromkeys(frontiers, bounds(0, until))),
            Isolation.READ_COMMITTED,
            None,
        )
        offsets = _offsets_of(given.plan(PlanLimits(2, 2, 2)))
        served.append({partition for partition, _ in offsets})
        for partition, offset in offsets:
            frontiers[partition] = offset + 1

    assert all(set.union(*served[at : at + 7]) == set(range(7)) for at in range(64))


ONE_PARTITION = Given(
    by_partition(an_account(frontier=5, beyond=[(10, 12)])),
    a_snapshot({0: bounds(0, 20, last_stable_offset=18)}),
    Isolation.READ_COMMITTED,
    None,
)

# Neighbours differ in one fact.
CASES = [
    ("hole and tail: a gap is as wanted as a tail", ONE_PARTITION, [(5, 10), (12, 18)]),
    (
        "read uncommitted: the high watermark is the end",
        replace(ONE_PARTITION, isolation=Isolation.READ_UNCOMMITTED),
        [(5, 10), (12, 20)],
    ),
    (
        "window ends in the tail: the cut is excluded",
        replace(ONE_PARTITION, cuts={0: 15}),
        [(5, 10), (12, 15)],
    ),
    (
        "window ends in the hole: what lies beyond is not due",
        replace(ONE_PARTITION, cuts={0: 8}),
        [(5, 8)],
    ),
    (
        "window ended before: everything before the cut is landed",
        replace(ONE_PARTITION, cuts={0: 5}),
        [],
    ),
    (
        "no record as late as the window's end: no such offset means everything, not nothing",
        replace(ONE_PARTITION, cuts={0: None}),
        [(5, 10), (12, 18)],
    ),
    (
        "log start in the hole: what expired can't be planned",
        replace(ONE_PARTITION, snapshot=a_snapshot({0: bounds(7, 18)})),
        [(7, 10), (12, 18)],
    ),
    (
        "log start at the frontier: equal is still readable",
        replace(ONE_PARTITION, snapshot=a_snapshot({0: bounds(5, 18)})),
        [(5, 10), (12, 18)],
    ),
    (
        "nothing readable: start equals end",
        replace(ONE_PARTITION, snapshot=a_snapshot({0: bounds(5, 5)})),
        [],
    ),
    (
        "partition not in the snapshot: another partition says nothing",
        replace(ONE_PARTITION, snapshot=a_snapshot({1: bounds(0, 9)})),
        [],
    ),
    (
        "another topic id: offsets of another log are other offsets",
        replace(ONE_PARTITION, snapshot=a_snapshot({0: bounds(0, 18)}, topic_id="topic-id-2")),
        [],
    ),
    (
        "stopped: an operator decides",
        replace(
            ONE_PARTITION,
            generations=by_partition(an_account(frontier=5, state=GenerationState.STOPPED)),
        ),
        [],
    ),
    (
        "closed: the log is gone",
        replace(
            ONE_PARTITION,
            generations=by_partition(an_account(frontier=5, state=GenerationState.CLOSED)),
        ),
        [],
    ),
]


@pytest.mark.parametrize(
    ("given", "expected"), [pytest.param(*rest, id=name) for name, *rest in CASES]
)
def test_what_is_planned(given: Given, expected: list[tuple[int, int]]) -> None:
    ranges = [each.offsets for batch in given.plan().batches for each in batch.ranges]

    assert ranges == [a_range(*each) for each in expected]


def test_two_ranges_of_one_partition_go_into_two_batches_in_order() -> None:
    # Invariant 3 of `due`.
    batches = ONE_PARTITION.plan().batches

    assert [each.ranges for each in batches] == [(planned(5, 10),), (planned(12, 18),)]


def test_a_big_range_is_split_and_small_ones_share_a_batch() -> None:
    given = Given(
        by_partition(*(an_account(partition=p) for p in range(3))),
        a_snapshot({0: bounds(0, 25), 1: bounds(0, 4), 2: bounds(0, 4)}),
        Isolation.READ_COMMITTED,
        None,
    )

    batches = given.plan(PlanLimits(1_000, 10, 2)).batches

    assert [[str(each.offsets) for each in batch.ranges] for batch in batches] == [
        ["orders-0 [0, 10)"],
        ["orders-1 [0, 4)", "orders-2 [0, 4)"],
        ["orders-0 [10, 20)"],
        ["orders-0 [20, 25)"],
    ]


def test_one_run_has_as_many_batches_as_it_can_carry_out_and_leaves_the_newest_offsets() -> None:
    given = Given(
        by_partition(*(an_account(partition=p) for p in range(700))),
        a_snapshot({p: bounds(0, 2) for p in range(700)}),
        Isolation.READ_COMMITTED,
        None,
    )

    plan = given.plan(PlanLimits(10**6, 1, 1))

    assert len(plan.batches) == MOST_BATCHES == 1000
    assert (plan.wanted, plan.planned) == (1400, 1000)
    assert len(given.plan(PlanLimits(10**6, 1, 1, 30)).batches) == 30
    first = {each.offsets for batch in plan.batches[:700] for each in batch.ranges}
    assert {each.from_offset for each in first} == {0}


@pytest.mark.parametrize("bad", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (-1, 1, 1)])
def test_a_limit_below_one_is_refused(bad: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="every limit is at least 1"):
        PlanLimits(*bad)


@pytest.mark.parametrize(
    ("first_batch", "limits", "expected"),
    [
        pytest.param(None, (10, 5), [[0, 5], [5, 10]], id="nobody asked: as records"),
        pytest.param(0, (10, 5), [[0, 5], [5, 10]], id="a batch is there at once"),
        pytest.param(90, (10, 50), [[0, 100]], id="ten of them may have records"),
        pytest.param(90, (10, 5), [[0, 95], [95, 100]], id="and make two batches"),
        pytest.param(90, (4, 50), [[0, 94]], id="four of them fit"),
        pytest.param(100, (4, 2), [[0, 100]], id="none may have a record"),
        pytest.param(200, (4, 2), [[0, 100]], id="the first batch lies beyond"),
    ],
)
def test_offsets_before_the_first_batch_take_nothing_of_a_budget(
    first_batch: int | None, limits: tuple[int, int], expected: list[list[int]]
) -> None:
    facts = Given(
        by_partition(an_account(frontier=0)),
        a_snapshot({0: bounds(0, 100)}),
        Isolation.READ_COMMITTED,
        None,
    )
    first = {} if first_batch is None else {0: first_batch}
    batches = facts.plan(PlanLimits(*limits, 10), first).batches

    assert [
        [each.offsets.from_offset, each.offsets.until_offset]
        for batch in batches
        for each in batch.ranges
    ] == expected


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        pytest.param((200, 200), {}, id="all fits"),
        pytest.param((110, 100), {}, id="all fits exactly"),
        pytest.param((109, 200), {0: 0}, id="a run's budget is too small for one of them"),
        pytest.param((10, 200), {0: 0, 1: 7}, id="for both of them"),
        pytest.param((200, 99), {0: 0}, id="a batch's budget is"),
    ],
)
def test_logs_are_asked_only_where_a_budget_is_exceeded(
    limits: tuple[int, int], asked: dict[int, int]
) -> None:
    wanted = [planned(0, 100), planned(7, 17, partition=1)]
    assert beyond_budgets(wanted, PlanLimits(*limits, 10)) == asked
