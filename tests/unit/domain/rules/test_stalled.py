"""N1, N2 and N3: what stands still, hangs or fails, and what only looks so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from tallystick.domain.batches.batch import TriedBatch, WaitingBatch
from tallystick.domain.batches.states import BatchState, Isolation
from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.outlook import Outlook
from tallystick.domain.logs.snapshot import BatchHead, PartitionBounds, PastBounds
from tallystick.domain.rules.n1_overdue import NO_RECONCILE, missed_reconcile, missed_runs
from tallystick.domain.rules.n2_stalled_stable_offset import (
    LONGEST_TRANSACTION,
    stalled_stable_offsets,
)
from tallystick.domain.rules.n3_unfinished_batch import (
    failing_batches,
    held_too_long,
    not_shown,
    refused_by_storage,
    unfinished_batches,
)
from tallystick.domain.rules.waivers import evidence_digest
from tallystick.domain.verdicts import Verdict
from tests.support.builders import (
    BATCH,
    FEED,
    NOON,
    TOPIC,
    a_manifest,
    a_snapshot,
    an_account,
    bounds,
    by_partition,
)

WAITING = an_account(frontier=5)
PERIOD = timedelta(hours=1)


@pytest.mark.parametrize(
    ("name", "account", "until", "idle_hours", "is_told"),
    [
        ("records wait, nobody comes", WAITING, 9, 3.1, True),
        ("three pauses are not over", WAITING, 9, 3.0, False),
        ("a batch is held", WAITING, 9, -0.01, False),
        ("never planned", WAITING, 9, None, False),
        ("nothing waits", WAITING, 5, 100, False),
        ("all that waits is claimed", an_account(frontier=5, beyond=[(5, 9)]), 9, 100, False),
        ("stopped", an_account(frontier=5, state=GenerationState.STOPPED), 9, 100, False),
    ],
)
def test_no_run_is_told_where_records_wait(
    name: str, account: object, until: int, idle_hours: float | None, is_told: bool
) -> None:
    found = missed_runs(
        FEED,
        by_partition(account),  # type: ignore[arg-type]
        a_snapshot({0: bounds(0, until)}),
        isolation=Isolation.READ_COMMITTED,
        idle=None if idle_hours is None else timedelta(hours=idle_hours),
        run_period=PERIOD,
    )
    assert bool(found) is is_told, name
    assert [(each.from_offset, each.until_offset) for each in found] == [(5, 9)] * is_told


@pytest.mark.parametrize(
    ("pause_hours", "silent_hours", "is_told"),
    [(1, 3.1, False), (1, 48, False), (1, 48.1, True), (24, 71.9, False), (24, 72.1, True)],
)
def test_a_reconcile_is_overdue_after_three_pauses_of_its_schedule_and_two_days(
    pause_hours: int, silent_hours: float, is_told: bool
) -> None:
    heard_at = NOON - timedelta(hours=silent_hours)
    found = missed_reconcile(FEED, TOPIC, heard_at, timedelta(hours=pause_hours), NOON)
    assert [each.name for each in found] == [NO_RECONCILE] * is_told


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


HOUR = 3600.0
PLAN = a_manifest().plan


def tried(held_hours: float | None = None, failures: int = 0, reason: str = "") -> list[TriedBatch]:
    seconds = None if held_hours is None else held_hours * HOUR
    return [TriedBatch(PLAN, failures, reason, Owner("run 7"), seconds)]


@pytest.mark.parametrize(
    ("held_hours", "is_told"), [(None, False), (0.1, False), (6.9, False), (7.1, True), (100, True)]
)
def test_a_batch_that_is_held_an_hour_longer_than_an_application_may_run_is_told(
    held_hours: float | None, is_told: bool
) -> None:
    found = held_too_long(FEED, TOPIC, tried(held_hours), timedelta(hours=6))
    assert bool(found) is is_told
    assert all(each.name == "held too long" and "run 7" in each.cause for each in found)


def waiting(state: BatchState, seconds: float, batch: str = BATCH) -> WaitingBatch:
    return WaitingBatch(BatchId(batch), state, seconds)


@pytest.mark.parametrize(
    ("state", "seconds", "is_told"),
    [
        (BatchState.PLANNED, 3599.0, False),
        (BatchState.LANDING, 3600.0, False),
        (BatchState.LANDING, 3601.0, True),
        (BatchState.VERIFIED, 3601.0, True),
        (BatchState.COMMITTED, 0.0, True),
    ],
)
def test_what_is_committed_and_not_shown_is_told_at_once(
    state: BatchState, seconds: float, is_told: bool
) -> None:
    assert bool(unfinished_batches(FEED, TOPIC, [waiting(state, seconds)])) is is_told


def test_two_batches_left_behind_are_two_findings() -> None:
    other = waiting(BatchState.COMMITTED, 7300.0, "00000000000000b2")
    held, shown = unfinished_batches(FEED, TOPIC, (waiting(BatchState.LANDING, 5400.0), other))

    assert held.key != shown.key
    assert (held.subject, shown.subject) == (BATCH, other.batch_id)
    assert held.cause == f"batch {BATCH} is landing, and for 1.5 h nobody has held it."
    assert "readers of the directories don't see its rows" in shown.cause


def test_a_refusal_is_the_same_finding_and_names_its_batch() -> None:
    [unasked] = unfinished_batches(FEED, TOPIC, [waiting(BatchState.COMMITTED, 1.0)])
    refused = not_shown(FEED, TOPIC, BATCH, "the quota is used up.", is_refused=True)
    assert refused.key == unasked.key
    assert refused.cause.endswith("don't see its rows: the quota is used up.")
    assert refused_by_storage([unasked, refused]) == [BATCH]
    assert refused_by_storage([not_shown(FEED, TOPIC, BATCH, "a stray is there.")]) == []


@pytest.mark.parametrize(("failures", "is_told"), [(0, False), (2, False), (3, True), (40, True)])
def test_failures_are_counted_and_not_the_age_of_a_lease(failures: int, is_told: bool) -> None:
    found = failing_batches(FEED, TOPIC, tried(0.0, failures, "disk full."))
    assert bool(found) is is_told
    assert all(each.verdict is Verdict.UNKNOWN for each in found)


def test_a_failing_batch_is_told_with_the_last_reason() -> None:
    [found] = failing_batches(FEED, TOPIC, tried(failures=3, reason="disk full."))
    assert found.cause == (
        f"batch {BATCH} was tried 3 times, and failed each time. The last reason: disk full."
    )
    assert found.evidence["reason"] == "disk full."


def test_attempts_that_were_killed_say_no_reason() -> None:
    [found] = failing_batches(FEED, TOPIC, tried(failures=3))
    assert found.cause.endswith("None said why.")
