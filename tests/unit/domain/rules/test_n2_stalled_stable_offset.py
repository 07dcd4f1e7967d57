"""Stable offsets that stand still, as a table: a long transaction is legal, a hung one is not."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from tallystick.domain.batches.states import Isolation
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.outlook import Outlook
from tallystick.domain.logs.snapshot import BatchHead, PartitionBounds, PastBounds
from tallystick.domain.rules.n2_stalled_stable_offset import (
    LONGEST_TRANSACTION,
    stalled_stable_offsets,
)
from tallystick.domain.rules.waivers import evidence_digest
from tallystick.domain.verdicts import Verdict
from tests.support.builders import FEED, NOON, a_snapshot, an_account, bounds, by_partition

OPEN_AT_5 = bounds(0, 9, last_stable_offset=5)
LANDED = an_account(frontier=5)
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Facts:
    """A transaction that has been open at offset 5 for sixteen minutes, and one record since."""

    now: PartitionBounds | None = OPEN_AT_5
    past: tuple[tuple[int, int, int], ...] = ((16, 8, 5),)
    """Minutes ago, high watermark, last stable offset."""
    longest: timedelta | None = None
    isolation: Isolation = Isolation.READ_COMMITTED
    account: GenerationAccount | None = LANDED
    topic_id: str = LANDED.topic_id

    def findings(self) -> str:
        past = [PastBounds(NOON - ago * MINUTE, high, stable) for ago, high, stable in self.past]
        found = stalled_stable_offsets(
            FEED,
            by_partition(self.account) if self.account else {},
            a_snapshot({0: self.now} if self.now else {}, topic_id=self.topic_id),
            Outlook(past={0: past}, longest_transaction=self.longest),
            isolation=self.isolation,
            now=NOON,
        )
        assert all(each.verdict is Verdict.UNKNOWN for each in found)
        return " ".join(f"[{each.from_offset}, {each.until_offset})" for each in found)


STALLED = "[5, 9)"
ROWS: list[tuple[str, Facts, str]] = [
    ("hung: longer than the default allows", Facts(), STALLED),
    ("a long one: fifteen minutes are allowed", Facts(past=((15, 8, 5),)), ""),
    ("a cluster that allows more: legal there", Facts(longest=timedelta(hours=1)), ""),
    ("a cluster that allows less: its bound", Facts(longest=MINUTE, past=((2, 8, 5),)), STALLED),
    ("nobody looked before: no evidence of how long", Facts(past=()), ""),
    ("another one then: the stable offset has moved", Facts(past=((16, 8, 4),)), ""),
    (
        "another one then, this one since: this one is young",
        Facts(past=((30, 8, 4), (10, 8, 5))),
        "",
    ),
    ("nothing open then: it was opened later", Facts(past=((16, 5, 5),)), ""),
    ("opened where a look ended: open since", Facts(past=((60, 5, 5), (16, 8, 5))), STALLED),
    ("opened there, and young: not open for long", Facts(past=((60, 5, 5), (14, 8, 5))), ""),
    ("nothing has come since: nothing is held up", Facts(past=((16, 9, 5),)), ""),
    ("ended: everything is stable again", Facts(now=bounds(0, 9)), ""),
    ("uncommitted: it reads them all", Facts(isolation=Isolation.READ_UNCOMMITTED), ""),
    ("not in the snapshot: another rule's business", Facts(now=None), ""),
    ("unknown to the ledger: another rule's business", Facts(account=None), ""),
    ("another log: offsets of two logs don't compare", Facts(topic_id="topic-id-2"), ""),
]


@pytest.mark.parametrize(
    ("facts", "expected"), [pytest.param(*rest, id=name) for name, *rest in ROWS]
)
def test_which_stable_offsets_are_stalled(facts: Facts, expected: str) -> None:
    assert facts.findings() == expected


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (BatchHead(5, 6, None, 100, 4711), "a transaction of producer 4711 has been open"),
        (None, "a transaction of a producer has been open"),
    ],
)
def test_the_producer_is_named_where_the_log_names_it(head: BatchHead | None, words: str) -> None:
    past = [PastBounds(NOON - LONGEST_TRANSACTION - MINUTE, 8, 5)]
    (found,) = stalled_stable_offsets(
        FEED,
        by_partition(LANDED),
        a_snapshot({0: OPEN_AT_5}),
        Outlook(at_stable={0: head} if head else {}, past={0: past}),
        isolation=Isolation.READ_COMMITTED,
        now=NOON,
    )

    assert words in found.cause
    assert found.evidence["producer_id"] == (head.producer_id if head else None)
    assert found.evidence["seen_first_at"] == "2026-11-01T11:44:00+00:00"


def test_a_stall_stays_the_same_finding_while_headers_cannot_be_read() -> None:
    """A waiver of it holds: who holds the transaction open, and since when, is only told better."""
    known = BatchHead(5, 6, None, 100, 4711)
    digests = {
        evidence_digest(each.evidence)
        for minutes, head in ((1, {0: known}), (2, {}))
        for each in stalled_stable_offsets(
            FEED,
            by_partition(LANDED),
            a_snapshot({0: OPEN_AT_5}),
            Outlook(
                at_stable=head,
                past={0: [PastBounds(NOON - LONGEST_TRANSACTION - minutes * MINUTE, 8, 5)]},
            ),
            isolation=Isolation.READ_COMMITTED,
            now=NOON,
        )
    }
    assert len(digests) == 1
