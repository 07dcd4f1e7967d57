"""Reconciliation as a table: every rule's verdict per row, and why. Neighbours differ in one fact.

A code that a row doesn't name must stay silent there: false alarms are defects of the same rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from tallystick.domain.batches.batch import BatchStatus, WaitingBatch
from tallystick.domain.batches.states import BatchState, Isolation
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.sameness import SAME, LogCheck, Sameness
from tallystick.domain.logs.sameness import UNKNOWN as NOBODY_CAN_TELL
from tallystick.domain.logs.snapshot import BrokerSnapshot, PartitionBounds, WindowBorder
from tallystick.domain.planning.log_changes import Accounts, EndedGeneration, Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tallystick.domain.rules.a3_log_cut import cut_finding
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.rules.log_findings import change_findings, end_findings, lost_finding
from tallystick.domain.rules.n1_overdue import unread_partitions
from tallystick.domain.rules.n3_unfinished_batch import unfinished_batches
from tallystick.domain.rules.registry import RULE_OF
from tallystick.domain.rules.u1_could_not_tell import BROKER, STORAGE, could_not_tell
from tallystick.domain.rules.z5_no_progress import frozen_time_index
from tallystick.domain.verdicts import Verdict
from tests.support.builders import (
    BATCH,
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

LANDED = an_account(frontier=5, anchor_offset=4)
STOPPED = replace(LANDED, state=GenerationState.STOPPED)
OVERWRITTEN = LogCheck(Sameness.CUT, None, is_overwritten=True)
CUT_AT_2 = LogCheck(Sameness.CUT, 2, is_overwritten=True)
CUT = LogCheck(Sameness.CUT)


@dataclass(frozen=True)
class Facts:
    """What ledger and broker say of partition 0, and of a window's end."""

    account: GenerationAccount | None = LANDED
    now: PartitionBounds | None = field(default_factory=lambda: bounds(0, 9))
    log: LogCheck = SAME
    topic_id: str = TOPIC_ID
    unfinished: tuple[BatchStatus, ...] = ()
    waiting: tuple[WaitingBatch, ...] = ()
    recorded: tuple[Finding, ...] = ()
    earlier: tuple[GenerationAccount, ...] = ()
    future_at: int | None = None
    """The offset at the window's border of a record from the future."""
    isolation: Isolation = Isolation.READ_UNCOMMITTED

    def findings(self) -> list[Finding]:
        """What every rule says."""
        accounts = Accounts(by_partition(self.account) if self.account else {}, self.unfinished)
        seen = Observation(
            a_snapshot({0: self.now} if self.now else {}, topic_id=self.topic_id),
            {0: self.log} if self.now else {},
            {0: 0},
        )
        changes = judge_logs(accounts, seen)
        known, snapshot = accounts.generations, seen.snapshot
        return [
            *change_findings(FEED, known, changes, seen),
            *end_findings(FEED, ended([*known.values(), *self.earlier]), self.recorded),
            *unread_partitions(FEED, known, snapshot),
            *unfinished_batches(FEED, TOPIC, self.waiting),
            *frozen_time_index(FEED, known, self._with_border(snapshot), self.isolation),
        ]

    def _with_border(self, snapshot: BrokerSnapshot) -> BrokerSnapshot:
        at = self.future_at
        future = {} if at is None else {0: at}
        return replace(snapshot, border=WindowBorder(NOON, {0: at}, {}, future))


def ended(logs: Iterable[GenerationAccount]) -> list[tuple[GenerationAccount, str, str]]:
    """Those of the logs that have ended, as the ledger tells them."""
    codes = {GenerationState.STOPPED: "A3", GenerationState.CLOSED: "A5"}
    return [(each, code, "then") for each in logs if (code := codes.get(each.state))]


def _told(findings: Iterable[Finding]) -> str:
    """Code, and name where it has several, with verdict and interval."""
    told: dict[str, str] = {}
    for each in findings:
        interval = "" if each.from_offset is None else f" [{each.from_offset}, {each.until_offset})"
        says = f"{each.verdict.value}{interval}"
        what = f"{each.code.value} {each.name}" if each.rule.names else each.code.value
        told[what] = ", ".join(filter(None, [told.get(what), says]))
    return "; ".join(f"{what}: {says}" for what, says in told.items())


CLAIMED = an_account(frontier=5, beyond=[(5, 9)])
LEFT = a_status(planned(5, 9))
HELD = a_status(planned(5, 9), lease_seconds_left=60.0)
CUT_AT_4 = cut_finding(
    FEED,
    LANDED,
    Observation(a_snapshot({0: bounds(0, 4)}), {}, {}),
    EndedGeneration(LANDED.generation_id, FindingCode.LOG_CUT, "then"),
)
GREW_AGAIN = cut_finding(
    FEED,
    LANDED,
    Observation(a_snapshot({0: bounds(0, 9)}), {}, {}),
    EndedGeneration(LANDED.generation_id, FindingCode.LOG_CUT, "then", is_overwritten=True),
)
NO_ANCHOR = replace(
    GREW_AGAIN, name="perhaps cut", verdict=Verdict.UNKNOWN, from_offset=None, until_offset=None
)
TAIL = replace(NO_ANCHOR, rule=RULE_OF[FindingCode.TOPIC_RECREATED], name="")
FIRST_OF_TWO = replace(LANDED, state=GenerationState.CLOSED)
SECOND = replace(LANDED, ordinal=2)


def left(seconds: float, state: BatchState = BatchState.LANDING) -> tuple[WaitingBatch, ...]:
    return (WaitingBatch(BATCH, state, seconds),)


ROWS: list[tuple[str, Facts, str]] = [
    ("clean: landed up to 5, more to come", Facts(), ""),
    ("young: an empty topic is no trouble", Facts(account=an_account(), now=bounds(0, 0)), ""),
    (
        "an open transaction: what is not stable yet is not lost",
        Facts(now=bounds(0, 9, last_stable_offset=5)),
        "",
    ),
    # A1
    ("retention won: log start passed 5", Facts(now=bounds(8, 9)), "A1: PROVEN_LOSS [5, 8)"),
    (
        "middle missing: a gap is due, not lost, while it can be read",
        Facts(account=an_account(frontier=5, beyond=[(8, 9)])),
        "",
    ),
    (
        "expired under a claim nobody holds: the claim's rest can still be landed",
        Facts(account=CLAIMED, now=bounds(8, 9), unfinished=(LEFT,)),
        "A1: PROVEN_LOSS [5, 8)",
    ),
    # A3
    (
        "cut: the end fell behind",
        Facts(now=bounds(0, 4), log=CUT),
        "A3 truncated: PROVEN_LOSS [4, 5)",
    ),
    (
        "cut to nothing: all is gone",
        Facts(now=bounds(0, 0), log=CUT),
        "A3 truncated: PROVEN_LOSS [0, 5)",
    ),
    (
        "cut under a claim: a claim that is released is no loss",
        Facts(account=CLAIMED, now=bounds(0, 8), log=CUT, unfinished=(HELD,)),
        "A3 truncated: PROVEN_LOSS [8, 9)",
    ),
    (
        "cut and grown again: another record lies where the last landed one was",
        Facts(log=OVERWRITTEN),
        "A3 overwritten: PROVEN_LOSS [4, 5)",
    ),
    (
        "cut and grown again, the epochs know where: all from there on is another log's",
        Facts(log=CUT_AT_2),
        "A3 overwritten: PROVEN_LOSS [2, 5)",
    ),
    (
        "cut, and seen to be: it has grown since, and not yet past what was read",
        Facts(now=bounds(0, 4), log=CUT_AT_2),
        "A3 truncated: PROVEN_LOSS [2, 5)",
    ),
    (
        "cut and grown, nothing landed by us: no anchor names the place",
        Facts(account=an_account(frontier=5), log=OVERWRITTEN),
        "A3 overwritten: PROVEN_LOSS",
    ),
    ("anchor gone: no evidence is never OK", Facts(log=NOBODY_CAN_TELL), "A3 perhaps cut: UNKNOWN"),
    (
        "seen, not landed, and nobody can tell: what was seen may be other records now",
        Facts(account=an_account(last_seen_until=5), log=NOBODY_CAN_TELL),
        "A3 perhaps cut: UNKNOWN",
    ),
    (
        "seen, not landed, and expired since: all that was seen is lost, cut or not",
        Facts(account=an_account(last_seen_until=5), log=NOBODY_CAN_TELL, now=bounds(5, 9)),
        "A1: PROVEN_LOSS [0, 5)",
    ),
    (
        "stopped before, grown since: the cut can't be seen any more, and is on record",
        Facts(account=STOPPED, recorded=(CUT_AT_4,)),
        "A3 truncated: PROVEN_LOSS [4, 5)",
    ),
    (
        "stopped before, not in the snapshot: nothing contradicts what was found",
        Facts(account=STOPPED, now=None, recorded=(GREW_AGAIN,)),
        "A3 overwritten: PROVEN_LOSS [4, 5)",
    ),
    (
        "stopped before, its anchor gone: an older doubt is answered",
        Facts(account=STOPPED, recorded=(NO_ANCHOR, CUT_AT_4)),
        "A3 truncated: PROVEN_LOSS [4, 5)",
    ),
    (
        "stopped before, finding closed by hand: the log's own row says that it was cut, not where",
        Facts(account=STOPPED),
        "A3 truncated: PROVEN_LOSS [4, 5)",
    ),
    (
        "an earlier life was stopped: somebody has decided where it goes on",
        Facts(account=SECOND, recorded=(CUT_AT_4,)),
        "",
    ),
    ("a doubt that has passed: the anchor can be judged again", Facts(recorded=(NO_ANCHOR,)), ""),
    # A5
    (
        "re-created: what was produced after the last look is not known",
        Facts(topic_id="topic-id-2"),
        "A5: UNKNOWN",
    ),
    (
        "re-created with a tail: the tail was seen and never landed",
        Facts(account=replace(LANDED, last_seen_until=7), topic_id="topic-id-2"),
        "A5: PROVEN_LOSS [5, 7), UNKNOWN",
    ),
    (
        "re-created before: nobody will ever know",
        Facts(account=SECOND, recorded=(TAIL,), earlier=(FIRST_OF_TWO,)),
        "A5: UNKNOWN",
    ),
    (
        "re-created before, the lost tail: a lost range is told from the ranges",
        Facts(account=SECOND, recorded=(replace(TAIL, verdict=Verdict.PROVEN_LOSS),)),
        "",
    ),
    (
        "re-created before, finding closed by hand: the log's own row says that its topic ended",
        Facts(account=SECOND, earlier=(FIRST_OF_TWO,)),
        "A5: UNKNOWN",
    ),
    # N1
    ("unread: nobody has looked yet", Facts(account=None), "N1 unread partition: UNKNOWN [0, 9)"),
    # N3
    (
        "left behind: more than an hour, no lease",
        Facts(waiting=left(3601)),
        "N3 left behind: UNKNOWN",
    ),
    # Z5
    (
        "a record from the future: no later window's end will ever pass it",
        Facts(future_at=5),
        "Z5: UNKNOWN [5, 9)",
    ),
    ("the future is not reached: offset 5 can still be landed", Facts(future_at=6), ""),
    (
        "the future is last: nothing piles up behind it",
        Facts(now=bounds(0, 6), future_at=5),
        "",
    ),
    (
        "one record behind the future: offset 6 is readable, and no window reaches it",
        Facts(now=bounds(0, 7), future_at=5),
        "Z5: UNKNOWN [5, 7)",
    ),
    (
        "an open transaction behind the future: nothing behind it can be read yet",
        Facts(
            now=bounds(0, 9, last_stable_offset=6),
            isolation=Isolation.READ_COMMITTED,
            future_at=5,
        ),
        "",
    ),
    (
        "a part of it is readable: the open transaction is another trouble",
        Facts(
            now=bounds(0, 9, last_stable_offset=7),
            isolation=Isolation.READ_COMMITTED,
            future_at=5,
        ),
        "Z5: UNKNOWN [5, 7)",
    ),
    (
        "the future was landed: its record is below the frontier, and one is behind it",
        Facts(now=bounds(0, 6), future_at=4),
        "Z5: UNKNOWN [5, 6)",
    ),
    (
        "a record from the future, stopped: a stopped partition has another trouble",
        Facts(account=replace(STOPPED, anchor=None), now=bounds(0, 9), future_at=5),
        "A3 truncated: PROVEN_LOSS",
    ),
]


@pytest.mark.parametrize(
    ("facts", "expected"), [pytest.param(*rest, id=name) for name, *rest in ROWS]
)
def test_what_is_found(facts: Facts, expected: str) -> None:
    assert _told(facts.findings()) == expected


def test_every_row_tells_in_words_what_happened_and_what_next() -> None:
    findings = [each for _, facts, _ in ROWS for each in facts.findings()]

    assert findings
    assert all(each.cause.endswith(".") for each in findings)
    assert all(len(each.next_step) > 20 for each in findings)


@pytest.mark.parametrize(
    ("code", "first_batch", "words"),
    [
        (FindingCode.EXPIRED, None, "the log start passed these offsets"),
        (FindingCode.EXPIRED, [8, 9], "the log start passed these offsets"),
        (FindingCode.EXPIRED, [7, 9], "deleted on purpose"),
        (FindingCode.TOPIC_RECREATED, None, "the topic was re-created"),
        (FindingCode.COMMITTED_FILE_MISSING, None, "the file with these rows is gone"),
    ],
)
def test_a_recorded_loss_names_its_cause(
    code: FindingCode, first_batch: list[int] | None, words: str
) -> None:
    evidence = {"log_start_offset": 8, "first_batch": first_batch}
    found = lost_finding(FEED, LANDED, a_range(5, 8), code.value, evidence)

    assert (found.code, found.verdict) == (code, Verdict.PROVEN_LOSS)
    assert words in found.cause
    assert found.evidence == evidence
    assert (found.from_offset, found.until_offset) == (5, 8)


def test_what_is_on_record_is_told_in_the_words_of_then() -> None:
    assert end_findings(FEED, ended([STOPPED]), [CUT_AT_4]) == (CUT_AT_4,)
    assert end_findings(FEED, ended([FIRST_OF_TWO]), [TAIL]) == (TAIL,)


def test_a_silent_witness_is_unknown() -> None:
    found = could_not_tell(STORAGE, FEED, TOPIC, "in safe mode.", what="HDFS", seen_at=NOON)

    assert _told([found]) == "U1: UNKNOWN"
    assert found.cause == "HDFS could not be asked: in safe mode."
    assert found.evidence == {"seen_at": "2026-11-01T12:00:00+00:00"}
    assert found.next_step == f"Run again when it answers: tallystick reconcile {FEED}"


def test_a_witness_that_says_no_is_not_waited_for() -> None:
    found = could_not_tell(
        BROKER, FEED, TOPIC, "no.", what="Kafka", seen_at=NOON, remedy="Create the topic."
    )

    assert found.next_step == "Create the topic."


def test_the_next_step_of_a_loss_fits_its_cause_and_names_how_to_accept_it() -> None:
    within_a_batch = {"log_start_offset": 8, "first_batch": [7, 9]}
    expired, purged, recreated = (
        lost_finding(FEED, LANDED, a_range(5, 8), code, evidence).next_step
        for code, evidence in (("A1", {}), ("A1", within_a_batch), ("A5", {}))
    )
    steps = (expired, purged, recreated)
    assert all("Two people may accept it: tallystick waive" in each for each in steps)
    assert "Land more often, or lengthen retention.ms" in expired
    assert "Find out who deleted them" in purged
    assert "retention" not in purged + recreated
