"""What a snapshot means for the ledger, over several partitions: properties.

The numbers are the invariants of `log_judgement`.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.batches.batch import BatchStatus
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.sameness import SAME, UNKNOWN, LogCheck, Sameness
from tallystick.domain.planning.accounts_after import accounts_after
from tallystick.domain.planning.log_changes import Accounts, Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tests.support.builders import (
    TOPIC_ID,
    a_snapshot,
    a_status,
    an_account,
    bounds,
    by_partition,
    planned,
)
from tests.support.strategies import offsets_in

LANDED = an_account(frontier=5, anchor_offset=4)
HELD, LEFT = 60.0, 0.0
CUT = LogCheck(Sameness.CUT, 4)
OVERWRITTEN = LogCheck(Sameness.CUT, None, is_overwritten=True)


@st.composite
def sick_or_well(draw: st.DrawFn, partition: int) -> tuple[GenerationAccount, list[BatchStatus]]:
    """An account whose ranges are committed, or claimed by a batch with or without a lease."""
    marks = sorted(draw(st.sets(st.integers(0, 30), min_size=1, max_size=7)))
    frontier, rest = marks[0], marks[1:]
    beyond = list(zip(rest[::2], rest[1::2], strict=False))
    claimed = [pair for pair in beyond if draw(st.booleans())]
    account = an_account(
        partition=partition,
        frontier=frontier,
        beyond=beyond,
        anchor_offset=draw(st.none() | st.just(max(0, frontier - 1))),
        last_seen_until=draw(st.integers(0, 40)),
        state=draw(st.sampled_from(GenerationState)),
        topic_id=draw(st.sampled_from([TOPIC_ID] * 3 + ["topic-id-0"])),
    )
    batches = [
        a_status(
            planned(*pair, partition=partition),
            lease_seconds_left=draw(st.sampled_from([HELD, LEFT])),
            batch_id=BatchId(f"{partition:08x}{number:08x}"),
        )
        for number, pair in enumerate(claimed)
    ]
    return account, batches


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Accounts, Observation]:
    drawn = [draw(sick_or_well(partition)) for partition in range(draw(st.integers(1, 3)))]
    ends = st.lists(st.integers(0, 40), min_size=2, max_size=2).map(sorted)
    seen = {p: bounds(*draw(ends)) for p in draw(st.sets(st.integers(0, 3)))}
    checks = {
        account.partition.partition: draw(st.sampled_from([SAME, UNKNOWN, CUT, OVERWRITTEN]))
        for account, _ in drawn
        if account.state is GenerationState.OPEN and account.partition.partition in seen
    }
    accounts = Accounts(
        by_partition(*(account for account, _ in drawn)),
        [batch for _, batches in drawn for batch in batches],
    )
    return accounts, Observation(a_snapshot(seen), checks, {})


def _only(accounts: Accounts, partition: int) -> Accounts:
    return Accounts(
        {p: account for p, account in accounts.generations.items() if p == partition},
        [
            batch
            for batch in accounts.unfinished
            if batch.plan.ranges[0].offsets.partition.partition == partition
        ],
    )


@given(worlds())
def test_one_sick_partition_changes_nothing_for_another(
    world: tuple[Accounts, Observation],
) -> None:
    # Invariant 1 of `log_judgement`.
    accounts, seen = world
    together = judge_logs(accounts, seen)
    alone = [judge_logs(_only(accounts, p), seen) for p in accounts.generations]

    assert list(together.lost) == [each for one in alone for each in one.lost]
    assert list(together.cuts) == [each for one in alone for each in one.cuts]
    assert list(together.stopped) == [each for one in alone for each in one.stopped]
    assert list(together.closed) == [each for one in alone for each in one.closed]


@given(worlds())
def test_a_loss_never_overlaps_what_is_committed_or_still_claimed(
    world: tuple[Accounts, Observation],
) -> None:
    # Invariant 2 of `log_judgement`.
    accounts, seen = world
    changes = judge_logs(accounts, seen)
    lost = [each.offsets for each in changes.lost]
    had = {
        place for account in accounts.generations.values() for place in offsets_in(account.beyond)
    }
    claims = {
        batch.plan.batch_id: offsets_in(each.offsets for each in batch.plan.ranges)
        for batch in accounts.unfinished
    }

    assert not offsets_in(lost) & had
    assert sum(each.span for each in lost) == len(offsets_in(lost))
    assert all(offsets_in([cut.offsets]) <= claims[cut.batch_id] for cut in changes.cuts)


@given(worlds())
def test_what_expired_is_lost_committed_or_held(world: tuple[Accounts, Observation]) -> None:
    accounts, seen = world
    changes = judge_logs(accounts, seen)
    ended = {each.generation_id for each in (*changes.stopped, *changes.closed)}
    gone = offsets_in([*(e.offsets for e in changes.lost), *(e.offsets for e in changes.cuts)])

    for partition, account in accounts.generations.items():
        now = seen.snapshot.partitions.get(partition)
        is_open = account.state is GenerationState.OPEN and account.topic_id == TOPIC_ID
        if now and is_open and account.generation_id not in ended:
            expired = {(partition, o) for o in range(account.frontier, now.log_start_offset)}
            assert expired <= gone | offsets_in(account.beyond)


# A dry run --------------------------------------------------------------------------------------


def test_a_dry_run_foresees_what_the_ledger_would_say() -> None:
    accounts = Accounts(
        by_partition(
            LANDED,
            an_account(partition=1, frontier=5, anchor_offset=4),
            an_account(partition=2, frontier=5, topic_id="topic-id-0"),
        ),
        [a_status(planned(5, 9, partition=2)), a_status(planned(5, 9))],
    )
    seen = Observation(
        a_snapshot({0: bounds(0, 9), 1: bounds(0, 4), 2: bounds(1, 9), 3: bounds(2, 9)}), {}, {}
    )

    foreseen = accounts_after(accounts, judge_logs(accounts, seen))

    assert {p: (each.state, each.frontier) for p, each in foreseen.generations.items()} == {
        0: (GenerationState.OPEN, 5),
        1: (GenerationState.STOPPED, 5),
        2: (GenerationState.OPEN, 1),
        3: (GenerationState.OPEN, 2),
    }
    assert [each.generation_id for p, each in foreseen.generations.items() if p > 1] == [-1, -2]
    assert foreseen.unfinished == accounts.unfinished[1:]
