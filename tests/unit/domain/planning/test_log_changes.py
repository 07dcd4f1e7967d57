"""What a snapshot means for the ledger: a table of neighbours one fact apart, then properties.

The numbers are the invariants of `log_judgement`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.batches.batch import BatchStatus
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.sameness import SAME, UNKNOWN, LogCheck, Sameness
from tallystick.domain.logs.snapshot import BatchHead, PartitionBounds
from tallystick.domain.planning.accounts_after import accounts_after
from tallystick.domain.planning.log_changes import Accounts, LogChanges, Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tests.support.builders import (
    CLUSTER,
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
CLAIMED = an_account(frontier=5, beyond=[(5, 9)])
SEEN_FURTHER = replace(LANDED, last_seen_until=7)
STOPPED = replace(LANDED, state=GenerationState.STOPPED)
CLOSED = replace(LANDED, state=GenerationState.CLOSED)
HELD, LEFT = 60.0, 0.0
CUT = LogCheck(Sameness.CUT, 4)
OVERWRITTEN = LogCheck(Sameness.CUT, None, is_overwritten=True)


@dataclass(frozen=True)
class Seen:
    """One row's facts: the ledger's account, what the broker says, and the claims."""

    account: GenerationAccount | None = LANDED
    now: PartitionBounds | None = field(default_factory=lambda: bounds(0, 9))
    log: LogCheck | None = SAME
    topic_id: str = TOPIC_ID
    cluster_id: str = CLUSTER
    first_batch: tuple[int, int] | None = None
    claims: Sequence[tuple[int, int, float]] = ()
    """From, until, seconds of lease left."""

    def changes(self) -> LogChanges:
        unfinished = [
            a_status(planned(a, b), lease_seconds_left=lease, batch_id=BatchId(f"{number:016x}"))
            for number, (a, b, lease) in enumerate(self.claims, start=1)
        ]
        accounts = Accounts(by_partition(self.account) if self.account else {}, unfinished)
        return judge_logs(
            accounts,
            Observation(
                a_snapshot(
                    {0: self.now} if self.now else {},
                    topic_id=self.topic_id,
                    cluster_id=self.cluster_id,
                ),
                {0: self.log} if self.log else {},
                {0: 3},
                {0: BatchHead(*self.first_batch, None, 100, None)} if self.first_batch else {},
            ),
        )


def _told(changes: LogChanges) -> dict[str, str]:
    """Everything that changes, in a few characters; what doesn't is left out."""
    told = {
        "lost": [f"{e.code.value} {_interval(e.offsets)}" for e in changes.lost],
        "cut": [f"{e.code.value} {_interval(e.offsets)} {e.becomes.value}" for e in changes.cuts],
        "stopped": [e.code.value for e in changes.stopped],
        "closed": [e.code.value for e in changes.closed],
        "opened": [f"gen {e.ordinal} at {e.first_offset}" for e in changes.opened],
    }
    return {kind: ", ".join(each) for kind, each in told.items() if each}


def _interval(offsets: object) -> str:
    return str(offsets).removeprefix("orders-0 ")


ROWS: list[tuple[str, Seen, Mapping[str, str]]] = [
    # Nothing changed.
    ("as before: landed up to 5, readable up to 9", Seen(), {}),
    ("all landed: equal is no regress", Seen(now=bounds(0, 5)), {}),
    ("log start at the frontier: equal is still readable", Seen(now=bounds(5, 9)), {}),
    ("empty log at the frontier: everything landed, then expired", Seen(now=bounds(5, 5)), {}),
    ("anchor gone: no evidence is no proof of a change", Seen(log=UNKNOWN), {}),
    ("never landed: no anchor to check", Seen(account=an_account(), log=None), {}),
    ("not in the snapshot: one empty answer closes nothing", Seen(now=None), {}),
    # A1: the log start passed the frontier.
    ("expired: log start passed the frontier", Seen(now=bounds(8, 9)), {"lost": "A1 [5, 8)"}),
    ("expired to the end: nothing left to land", Seen(now=bounds(9, 9)), {"lost": "A1 [5, 9)"}),
    ("expired by one: one offset is a loss too", Seen(now=bounds(6, 9)), {"lost": "A1 [5, 6)"}),
    (
        "expired, a batch begins there: retention and a purge look alike at a batch's border",
        Seen(now=bounds(8, 9), first_batch=(8, 9)),
        {"lost": "A1 [5, 8)"},
    ),
    (
        "expired, the next batch begins later: what was compacted says nothing of who deleted",
        Seen(now=bounds(8, 12), first_batch=(10, 12)),
        {"lost": "A1 [5, 8)"},
    ),
    (
        "purged: retention never cuts a batch in two",
        Seen(now=bounds(8, 9), first_batch=(7, 9)),
        {"lost": "A2 [5, 8)"},
    ),
    (
        "purged, and all of it was landed: purging what is safe is nobody's loss",
        Seen(now=bounds(4, 9), first_batch=(2, 6)),
        {},
    ),
    (
        "expired, a later range committed: what was landed out of order is not lost",
        Seen(account=an_account(frontier=5, beyond=[(6, 7)]), now=bounds(8, 9)),
        {"lost": "A1 [5, 6), A1 [7, 8)"},
    ),
    (
        "expired up to a committed range: what expired after it was landed is no loss",
        Seen(account=an_account(frontier=5, beyond=[(6, 9)]), now=bounds(8, 9)),
        {"lost": "A1 [5, 6)"},
    ),
    (
        "expired under a claim that was left: nobody holds it: only the rest can be landed",
        Seen(account=CLAIMED, now=bounds(8, 9), claims=[(5, 9, LEFT)]),
        {"cut": "A1 [5, 8) lost"},
    ),
    (
        "expired under a claim that is held: its attempt may have read the records in time",
        Seen(account=CLAIMED, now=bounds(8, 9), claims=[(5, 9, HELD)]),
        {},
    ),
    (
        "expired before a claim that was left: the claim is still readable",
        Seen(
            account=an_account(frontier=5, beyond=[(8, 9)]), now=bounds(8, 9), claims=[(8, 9, LEFT)]
        ),
        {"lost": "A1 [5, 8)"},
    ),
    (
        "expired, anchor gone: the anchor expired with the rest",
        Seen(now=bounds(8, 9), log=UNKNOWN),
        {"lost": "A1 [5, 8)"},
    ),
    # A3: the readable end fell behind what was readable before.
    ("cut: the end lies before the frontier", Seen(now=bounds(0, 4), log=CUT), {"stopped": "A3"}),
    (
        "cut behind a gap: a range landed out of order is cut too",
        Seen(account=an_account(frontier=5, beyond=[(7, 9)]), now=bounds(0, 8), log=CUT),
        {"stopped": "A3"},
    ),
    (
        "cut under a claim: an attempt of a log that was cut proves nothing",
        Seen(account=CLAIMED, now=bounds(0, 8), log=CUT, claims=[(5, 9, HELD)]),
        {"stopped": "A3", "cut": "A3 [5, 9) released"},
    ),
    (
        "cut and expired: the cut comes first: what is lost is unclear",
        Seen(now=bounds(4, 4), log=CUT),
        {"stopped": "A3"},
    ),
    (
        "cut, anchor differs: one cause is named, the visible one",
        Seen(now=bounds(0, 4), log=OVERWRITTEN),
        {"stopped": "A3"},
    ),
    (
        "shorter, and nobody can tell why: a log that stays shorter counts as cut",
        Seen(now=bounds(0, 4), log=UNKNOWN),
        {"stopped": "A3"},
    ),
    (
        "shorter, and whole: after a change of leaders the high watermark may lag behind",
        Seen(now=bounds(0, 4)),
        {},
    ),
    (
        "shorter under a claim, and whole: what is claimed is in the log, and can be read later",
        Seen(account=CLAIMED, now=bounds(0, 8), claims=[(5, 9, LEFT)]),
        {},
    ),
    (
        "cut beyond what was landed, and grown again: what was seen to be readable is gone",
        Seen(account=SEEN_FURTHER, log=LogCheck(Sameness.CUT, 6)),
        {"stopped": "A3"},
    ),
    # A4: cut and grown again.
    (
        "anchor differs: the last landed record is another one now",
        Seen(log=OVERWRITTEN),
        {"stopped": "A3"},
    ),
    (
        "anchor differs, expired: the new log's start says nothing of the old one's",
        Seen(log=OVERWRITTEN, now=bounds(8, 9)),
        {"stopped": "A3"},
    ),
    (
        "anchor differs, but it was never kept: the frontier names the place then",
        Seen(account=an_account(frontier=5), log=OVERWRITTEN),
        {"stopped": "A3"},
    ),
    # A5: another topic under the same name.
    (
        "re-created: everything readable was landed before",
        Seen(topic_id="topic-id-2"),
        {"closed": "A5", "opened": "gen 2 at 0"},
    ),
    (
        "re-created with a tail: the tail was readable and never landed",
        Seen(account=SEEN_FURTHER, topic_id="topic-id-2"),
        {"closed": "A5", "lost": "A5 [5, 7)", "opened": "gen 2 at 0"},
    ),
    (
        "re-created, and expired since: a new log begins at its log start",
        Seen(topic_id="topic-id-2", now=bounds(3, 9)),
        {"closed": "A5", "opened": "gen 2 at 3"},
    ),
    (
        "re-created under a claim: its attempt may have read it: the new log waits",
        Seen(account=CLAIMED, topic_id="topic-id-2", claims=[(5, 9, HELD)]),
        {},
    ),
    (
        "re-created, anchor differs: the identity explains the anchor",
        Seen(topic_id="topic-id-2", log=OVERWRITTEN),
        {"closed": "A5", "opened": "gen 2 at 0"},
    ),
    (
        "another cluster: the same topic elsewhere is another log",
        Seen(cluster_id="cluster-2"),
        {"closed": "A5", "opened": "gen 2 at 0"},
    ),
    (
        "re-created without this partition: the new topic has fewer partitions",
        Seen(topic_id="topic-id-2", now=None),
        {"closed": "A5"},
    ),
    # Generations that have ended.
    ("stopped: an operator decides", Seen(account=STOPPED, now=bounds(8, 9)), {}),
    (
        "stopped, then re-created: the log that was in doubt is gone",
        Seen(account=STOPPED, topic_id="topic-id-2"),
        {"closed": "A5", "opened": "gen 2 at 0"},
    ),
    ("closed: an operator's word, not a new log", Seen(account=CLOSED), {}),
    (
        "closed, a new log since: closed once is closed for good",
        Seen(account=CLOSED, topic_id="topic-id-2"),
        {"opened": "gen 2 at 0"},
    ),
    # Partitions without an account.
    (
        "the feed's first plan: the start policy is asked",
        Seen(account=None, log=None),
        {"opened": "gen 1 at 3"},
    ),
    ("no partition at all: nothing to account for", Seen(account=None, log=None, now=None), {}),
]


@pytest.mark.parametrize(
    ("seen", "expected"), [pytest.param(*rest, id=name) for name, *rest in ROWS]
)
def test_what_a_snapshot_changes(seen: Seen, expected: Mapping[str, str]) -> None:
    assert _told(seen.changes()) == expected


def test_an_added_partition_begins_at_its_log_start_in_the_same_life() -> None:
    # 3: the start policy would say 3.
    changes = judge_logs(
        Accounts(by_partition(replace(LANDED, ordinal=4)), []),
        Observation(a_snapshot({0: bounds(0, 9), 1: bounds(6, 9)}), {}, {0: 3, 1: 3}),
    )

    assert _told(changes) == {"opened": "gen 4 at 6"}
    assert [each.reason for each in changes.opened] == ["the partition was added"]


def test_a_new_life_is_numbered_after_every_life_before() -> None:
    changes = judge_logs(
        Accounts(by_partition(LANDED, an_account(partition=1, ordinal=3)), []),
        Observation(a_snapshot({0: bounds(0, 1)}, topic_id="topic-id-9"), {}, {}),
    )

    assert [each.ordinal for each in changes.opened] == [4]
    assert [each.reason for each in changes.opened] == ["the topic was re-created"]


def test_a_loss_carries_its_evidence() -> None:
    (lost,) = Seen(now=bounds(8, 9)).changes().lost

    assert lost.evidence == {
        "log_start_offset": 8,
        "frontier": 5,
        "topic_id": TOPIC_ID,
        "seen_at": "2026-11-01T12:00:00+00:00",
        "first_batch": None,
    }


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (
            Seen(now=bounds(0, 4), log=CUT),
            "the log ends at 4, but offsets up to 5 were readable before",
        ),
        (Seen(log=OVERWRITTEN), "the record landed from offset 4 is not there any more"),
        (Seen(account=an_account(frontier=5), log=OVERWRITTEN), "the record landed from offset 5"),
    ],
)
def test_a_stopped_partition_says_why(seen: Seen, words: str) -> None:
    (stopped,) = seen.changes().stopped

    assert stopped.reason.startswith(words)


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
