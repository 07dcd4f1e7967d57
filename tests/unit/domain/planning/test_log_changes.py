"""What a snapshot means for the ledger: a table of neighbours one fact apart, then properties.

The numbers are the module's invariants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.sameness import SAME, UNKNOWN, LogCheck, Sameness
from tallystick.domain.logs.snapshot import BatchHead, PartitionBounds
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

LANDED = an_account(frontier=5, anchor_offset=4)
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


ROWS: list[tuple[str, Seen, Mapping[str, str], str]] = [
    # Nothing changed.
    ("as before", Seen(), {}, "landed up to 5, readable up to 9"),
    ("all landed", Seen(now=bounds(0, 5)), {}, "equal is no regress"),
    ("log start at the frontier", Seen(now=bounds(5, 9)), {}, "equal is still readable"),
    ("empty log at the frontier", Seen(now=bounds(5, 5)), {}, "everything landed, then expired"),
    ("anchor gone", Seen(log=UNKNOWN), {}, "no evidence is no proof of a change"),
    ("never landed", Seen(account=an_account(), log=None), {}, "no anchor to check"),
    ("not in the snapshot", Seen(now=None), {}, "one empty answer closes nothing"),
    # A1: the log start passed the frontier.
    ("expired", Seen(now=bounds(8, 9)), {"lost": "A1 [5, 8)"}, "log start passed the frontier"),
    ("expired to the end", Seen(now=bounds(9, 9)), {"lost": "A1 [5, 9)"}, "nothing left to land"),
    ("expired by one", Seen(now=bounds(6, 9)), {"lost": "A1 [5, 6)"}, "one offset is a loss too"),
    (
        "expired, a batch begins there",
        Seen(now=bounds(8, 9), first_batch=(8, 9)),
        {"lost": "A1 [5, 8)"},
        "retention and a purge look alike at a batch's border",
    ),
    (
        "expired, the next batch begins later",
        Seen(now=bounds(8, 12), first_batch=(10, 12)),
        {"lost": "A1 [5, 8)"},
        "what was compacted says nothing of who deleted",
    ),
    (
        "purged",
        Seen(now=bounds(8, 9), first_batch=(7, 9)),
        {"lost": "A2 [5, 8)"},
        "retention never cuts a batch in two",
    ),
    (
        "purged, and all of it was landed",
        Seen(now=bounds(4, 9), first_batch=(2, 6)),
        {},
        "purging what is safe is nobody's loss",
    ),
    (
        "expired, a later range committed",
        Seen(account=an_account(frontier=5, beyond=[(6, 7)]), now=bounds(8, 9)),
        {"lost": "A1 [5, 6), A1 [7, 8)"},
        "what was landed out of order is not lost",
    ),
    (
        "expired up to a committed range",
        Seen(account=an_account(frontier=5, beyond=[(6, 9)]), now=bounds(8, 9)),
        {"lost": "A1 [5, 6)"},
        "what expired after it was landed is no loss",
    ),
    (
        "expired under a claim that was left",
        Seen(
            account=an_account(frontier=5, beyond=[(5, 9)]), now=bounds(8, 9), claims=[(5, 9, LEFT)]
        ),
        {"cut": "A1 [5, 8) lost"},
        "nobody holds it: only the rest can be landed",
    ),
    (
        "expired under a claim that is held",
        Seen(
            account=an_account(frontier=5, beyond=[(5, 9)]), now=bounds(8, 9), claims=[(5, 9, HELD)]
        ),
        {},
        "its attempt may have read the records in time",
    ),
    (
        "expired before a claim that was left",
        Seen(
            account=an_account(frontier=5, beyond=[(8, 9)]), now=bounds(8, 9), claims=[(8, 9, LEFT)]
        ),
        {"lost": "A1 [5, 8)"},
        "the claim is still readable",
    ),
    (
        "expired, anchor gone",
        Seen(now=bounds(8, 9), log=UNKNOWN),
        {"lost": "A1 [5, 8)"},
        "the anchor expired with the rest",
    ),
    # A3: the readable end fell behind what was readable before.
    ("cut", Seen(now=bounds(0, 4), log=CUT), {"stopped": "A3"}, "the end lies before the frontier"),
    (
        "cut behind a gap",
        Seen(account=an_account(frontier=5, beyond=[(7, 9)]), now=bounds(0, 8), log=CUT),
        {"stopped": "A3"},
        "a range landed out of order is cut too",
    ),
    (
        "cut under a claim",
        Seen(
            account=an_account(frontier=5, beyond=[(5, 9)]),
            now=bounds(0, 8),
            log=CUT,
            claims=[(5, 9, HELD)],
        ),
        {"stopped": "A3", "cut": "A3 [5, 9) released"},
        "an attempt of a log that was cut proves nothing",
    ),
    (
        "cut and expired",
        Seen(now=bounds(4, 4), log=CUT),
        {"stopped": "A3"},
        "the cut comes first: what is lost is unclear",
    ),
    (
        "cut, anchor differs",
        Seen(now=bounds(0, 4), log=OVERWRITTEN),
        {"stopped": "A3"},
        "one cause is named, the visible one",
    ),
    (
        "shorter, and nobody can tell why",
        Seen(now=bounds(0, 4), log=UNKNOWN),
        {"stopped": "A3"},
        "a log that stays shorter counts as cut",
    ),
    (
        "shorter, and whole",
        Seen(now=bounds(0, 4)),
        {},
        "after a change of leaders the high watermark may lag behind",
    ),
    (
        "shorter under a claim, and whole",
        Seen(
            account=an_account(frontier=5, beyond=[(5, 9)]), now=bounds(0, 8), claims=[(5, 9, LEFT)]
        ),
        {},
        "what is claimed is in the log, and can be read later",
    ),
    (
        "cut beyond what was landed, and grown again",
        Seen(account=replace(LANDED, last_seen_until=7), log=LogCheck(Sameness.CUT, 6)),
        {"stopped": "A3"},
        "what was seen to be readable is gone",
    ),
    # A4: cut and grown again.
    (
        "anchor differs",
        Seen(log=OVERWRITTEN),
        {"stopped": "A3"},
        "the last landed record is another one now",
    ),
    (
        "anchor differs, expired",
        Seen(log=OVERWRITTEN, now=bounds(8, 9)),
        {"stopped": "A3"},
        "the new log's start says nothing of the old one's",
    ),
    (
        "anchor differs, but it was never kept",
        Seen(account=an_account(frontier=5), log=OVERWRITTEN),
        {"stopped": "A3"},
        "the frontier names the place then",
    ),
    # A5: another topic under the same name.
    (
        "re-created",
        Seen(topic_id="topic-id-2"),
        {"closed": "A5", "opened": "gen 2 at 0"},
        "everything readable was landed before",
    ),
    (
        "re-created with a tail",
        Seen(account=replace(LANDED, last_seen_until=7), topic_id="topic-id-2"),
        {"closed": "A5", "lost": "A5 [5, 7)", "opened": "gen 2 at 0"},
        "the tail was readable and never landed",
    ),
    (
        "re-created, and expired since",
        Seen(topic_id="topic-id-2", now=bounds(3, 9)),
        {"closed": "A5", "opened": "gen 2 at 3"},
        "a new log begins at its log start",
    ),
    (
        "re-created under a claim",
        Seen(
            account=an_account(frontier=5, beyond=[(5, 9)]),
            topic_id="topic-id-2",
            claims=[(5, 9, HELD)],
        ),
        {},
        "its attempt may have read it: the new log waits",
    ),
    (
        "re-created, anchor differs",
        Seen(topic_id="topic-id-2", log=OVERWRITTEN),
        {"closed": "A5", "opened": "gen 2 at 0"},
        "the identity explains the anchor",
    ),
    (
        "another cluster",
        Seen(cluster_id="cluster-2"),
        {"closed": "A5", "opened": "gen 2 at 0"},
        "the same topic elsewhere is another log",
    ),
    (
        "re-created without this partition",
        Seen(topic_id="topic-id-2", now=None),
        {"closed": "A5"},
        "the new topic has fewer partitions",
    ),
    # Generations that have ended.
    (
        "stopped",
        Seen(account=replace(LANDED, state=GenerationState.STOPPED), now=bounds(8, 9)),
        {},
        "an operator decides",
    ),
    (
        "stopped, then re-created",
        Seen(account=replace(LANDED, state=GenerationState.STOPPED), topic_id="topic-id-2"),
        {"closed": "A5", "opened": "gen 2 at 0"},
        "the log that was in doubt is gone",
    ),
    (
        "closed",
        Seen(account=replace(LANDED, state=GenerationState.CLOSED)),
        {},
        "an operator's word, not a new log",
    ),
    (
        "closed, a new log since",
        Seen(account=replace(LANDED, state=GenerationState.CLOSED), topic_id="topic-id-2"),
        {"opened": "gen 2 at 0"},
        "closed once is closed for good",
    ),
    # Partitions without an account.
    (
        "the feed's first plan",
        Seen(account=None, log=None),
        {"opened": "gen 1 at 3"},
        "the start policy is asked",
    ),
    (
        "no partition at all",
        Seen(account=None, log=None, now=None),
        {},
        "nothing to account for",
    ),
]


@pytest.mark.parametrize(
    ("seen", "expected", "why"), [pytest.param(*rest, id=name) for name, *rest in ROWS]
)
def test_what_a_snapshot_changes(seen: Seen, expected: Mapping[str, str], why: str) -> None:
    assert _told(seen.changes()) == expected, why


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
        (
            Seen(account=an_account(frontier=5), log=OVERWRITTEN),
            "the record landed from offset 5",
        ),
    ],
)
def test_a_stopped_partition_says_why(seen: Seen, words: str) -> None:
    (stopped,) = seen.changes().stopped

    assert stopped.reason.startswith(words)
