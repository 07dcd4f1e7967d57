"""Which findings a look ends: neighbouring rows differ in one fact."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.identities import BatchId, GenerationId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot, PartitionBounds
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.domain.rules.closing import Heard, Payloads, ended_findings
from tallystick.domain.rules.findings import Finding, FindingCode, Level, foreseen
from tallystick.domain.rules.registry import RULE_OF
from tallystick.domain.verdicts import Verdict

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
SHOWN = BrokerSnapshot(
    "c", "orders", "t", NOON, {each: PartitionBounds(0, 9, 9, 0) for each in (0, 1)}
)
ALL = Heard(NOON, broker=SHOWN, storage=True)
BATCH = BatchId("b" * 16)
OF_ROWS = f"rows of batch {BATCH}"


def found(code: FindingCode, level: Level = Level.L2, **changed: object) -> Finding:
    """A finding about offsets [0, 5) of partition 0, generation 1."""
    known = Finding(
        rule=RULE_OF[code],
        verdict=RULE_OF[code].verdicts[0],
        level=level,
        feed="orders",
        topic="orders",
        generation=1,
        partition=0,
        from_offset=0,
        until_offset=5,
        cause="it is so.",
        next_step="Look.",
        evidence={"batch": BATCH, "file": "part-0"},
        name=next(iter(RULE_OF[code].names), ""),
    )
    return replace(known, **changed)  # type: ignore[arg-type]


def without(partition: int, *, topic_id: str = "t", is_leaderless: bool = True) -> BrokerSnapshot:
    """A look that does not show one of the partitions."""
    return replace(
        SHOWN,
        topic_id=topic_id,
        partitions={each: SHOWN.partitions[each] for each in SHOWN.partitions if each != partition},
        leaderless=frozenset({partition} if is_leaderless else ()),
    )


def account(
    ordinal: int = 1, frontier: int = 3, state: GenerationState = GenerationState.OPEN
) -> dict[int, GenerationAccount]:
    partition = TopicPartition("orders", 0)
    return {
        0: GenerationAccount(
            GenerationId(1),
            partition,
            "c",
            "t",
            ordinal,
            state,
            0,
            frontier,
            (),
            9,
            None,
        )
    }


A8, C1, A3, Z5, A1, B3 = (
    FindingCode.COMMITTED_FILE_MISSING,
    FindingCode.CONTENT_CHANGED,
    FindingCode.LOG_CUT,
    FindingCode.NO_PROGRESS,
    FindingCode.EXPIRED,
    FindingCode.PAYLOAD_TWICE,
)
C3 = FindingCode.ROWS_DIFFER
N1, N3, U1 = FindingCode.OVERDUE, FindingCode.UNFINISHED_BATCH, FindingCode.COULD_NOT_TELL
N2, W1, A4 = FindingCode.STALLED_STABLE_OFFSET, FindingCode.LOSS_NEAR, FindingCode.LOG_CUT


UNLISTED = without(0, is_leaderless=False)
OF_NEW_TOPIC = without(0, is_leaderless=False, topic_id="u")


@pytest.mark.parametrize(
    ("finding", "heard", "accounts", "ends"),
    [
        (found(A8), ALL, account(), True),
        (found(A8), replace(ALL, storage=False), account(), False),
        (found(A8), replace(ALL, broker=None), account(), True),
        (
            found(A8),
            replace(ALL, storage=False, replaced={CommittedFile(BATCH, "part-0")}),
            account(),
            True,
        ),
        (
            found(A8),
            replace(ALL, storage=False, replaced={CommittedFile(BATCH, "part-1")}),
            account(),
            False,
        ),
        (found(A8, subject=OF_ROWS), ALL, account(), False),
        (
            found(A8, subject=OF_ROWS),
            replace(ALL, offsets_read={BATCH: True}),
            account(),
            True,
        ),
        (
            found(A8, subject=OF_ROWS),
            replace(ALL, offsets_read={BATCH: False}),
            account(),
            False,
        ),
        (found(C1, Level.L3), ALL, account(), False),
        (found(C1, Level.L3), replace(ALL, read_in_full={BATCH: True}), account(), True),
        (found(C1, Level.L3), replace(ALL, read_in_full={BATCH: False}), account(), False),
        (found(C1, Level.L3), replace(ALL, offsets_read={BATCH: True}), account(), False),
        (found(C3, Level.L4), ALL, account(), False),
        (found(C3, Level.L4), replace(ALL, read_in_full={BATCH: True}), account(), False),
        (found(C3, Level.L4), replace(ALL, equal_again={(BATCH, "part-0", 0)}), account(), True),
        (found(C3, Level.L4), replace(ALL, equal_again={(BATCH, "part-0", 1)}), account(), False),
        (found(C3, Level.L4), replace(ALL, equal_again={(BATCH, "part-1", 0)}), account(), False),
        (
            found(C3, Level.L4),
            replace(ALL, replaced={CommittedFile(BATCH, "part-0")}),
            account(),
            True,
        ),
        (found(N1, Level.L1), ALL, account(), True),
        (found(N1, Level.L1), replace(ALL, broker=None), account(), False),
        (found(N1, Level.L1), replace(ALL, broker=without(0)), account(), False),
        (found(N1, Level.L1), replace(ALL, broker=without(1)), account(), True),
        (found(W1, Level.L1), replace(ALL, broker=without(0)), account(), False),
        (found(N2, Level.L1), replace(ALL, broker=without(0)), account(), False),
        (found(W1, Level.L1), ALL, account(), True),
        (found(W1, Level.L1), replace(ALL, not_told={0}), account(), False),
        (found(W1, Level.L1), replace(ALL, not_told={1}), account(), True),
        (found(N1, Level.L1), replace(ALL, not_told={0}), account(), True),
        (found(A8), replace(ALL, broker=without(0)), account(), True),
        (found(W1, Level.L1), replace(ALL, broker=UNLISTED), account(), False),
        (found(U1, Level.L1), replace(ALL, broker=UNLISTED), account(), False),
        (found(U1, Level.L1), replace(ALL, broker=OF_NEW_TOPIC), account(), True),
        (found(N1, Level.L1), ALL, {}, True),
        (found(N1, Level.L1, evidence={"topic_id": "t"}), replace(ALL, broker=UNLISTED), {}, False),
        (found(N1, Level.L1, evidence={}), replace(ALL, broker=UNLISTED), {}, False),
        (found(N1, Level.L1, evidence={"topic_id": "s"}), replace(ALL, broker=UNLISTED), {}, True),
        (found(N3, Level.L1), Heard(NOON, broker=None, storage=False), account(), True),
        (found(N3), replace(ALL, broker=None), account(), True),
        (found(N3), replace(ALL, storage=False), account(), False),
        (found(U1, Level.L1), ALL, account(), True),
        (found(U1, Level.L1), replace(ALL, broker=None), account(), False),
        (found(U1, Level.L2), replace(ALL, broker=None), account(), True),
        (found(A1, Level.L1), ALL, account(), False),
        (found(A8, Level.L1), ALL, account(), False),
        (found(B3, Level.L3), replace(ALL, read_in_full={BATCH: True}), account(), False),
        (found(B3, Level.L3), replace(ALL, payloads=Payloads.COMPARED), account(), True),
        (found(B3, Level.L3), replace(ALL, payloads=Payloads.NOT_ASKED_FOR), account(), True),
        (found(A3, Level.L1), ALL, account(), False),
        (found(A3, Level.L1), ALL, account(ordinal=2), True),
        (found(A4, Level.L1), ALL, account(), False),
        (found(A4, Level.L1, verdict=Verdict.UNKNOWN), ALL, account(), False),
        (
            found(A4, Level.L1, verdict=Verdict.UNKNOWN),
            replace(ALL, broker=without(0)),
            account(),
            False,
        ),
        (foreseen(found(A1, Level.L1)), ALL, account(), True),
        (foreseen(found(A3, Level.L1)), ALL, account(), True),
        (foreseen(found(A1, Level.L1)), replace(ALL, broker=None), account(), False),
        (foreseen(found(A1, Level.L1)), replace(ALL, broker=without(0)), account(), False),
        (foreseen(found(A1, Level.L1)), replace(ALL, broker=without(1)), account(), True),
        (found(Z5, Level.L1), ALL, account(frontier=4), False),
        (found(Z5, Level.L1), ALL, account(frontier=5), True),
        (found(Z5, Level.L1), ALL, account(ordinal=2, frontier=0), True),
        (found(Z5, Level.L1, generation=2), ALL, account(frontier=5), False),
        (found(Z5, Level.L1), ALL, account(state=GenerationState.STOPPED), False),
        (found(Z5, Level.L1), ALL, account(state=GenerationState.CLOSED), True),
    ],
    ids=lambda value: value.code.value if isinstance(value, Finding) else "",
)
def test_a_finding_that_was_not_found_again(
    finding: Finding, heard: Heard, accounts: dict[int, GenerationAccount], ends: bool
) -> None:
    ended = ended_findings({7: finding}, [], heard, accounts)
    assert (list(ended) == [7]) is ends
    assert all(reason.endswith(".") for reason in ended.values())


@pytest.mark.parametrize(
    ("finding", "said", "ends"),
    [
        (found(C1, subject="part-0"), found(U1, subject="part-0"), False),
        (found(A8, subject="part-0"), found(U1, subject="part-0"), False),
        (found(C1, subject="part-0"), found(U1, subject="part-1"), True),
        (found(C1, subject="part-0"), found(A8, subject="part-0"), True),
        (found(C1, subject="part-0"), found(U1, Level.L1, subject="part-0"), True),
    ],
)
def test_what_could_not_be_asked_was_not_looked_at(
    finding: Finding, said: Finding, ends: bool
) -> None:
    assert (list(ended_findings({7: finding}, [said], ALL, account())) == [7]) is ends


@pytest.mark.parametrize("is_heard", [True, False])
def test_what_was_foreseen_ends_where_a_look_foresees_it_no_more(is_heard: bool) -> None:
    finding = foreseen(found(A1, Level.L1))
    heard = ALL if is_heard else replace(ALL, broker=None)
    assert (7 in ended_findings({7: finding}, [], heard, account())) is is_heard
    assert ended_findings({7: finding}, [finding], heard, account()) == {}


@pytest.mark.parametrize("finding", [found(A8), found(A3, Level.L1), found(N1, Level.L1)])
def test_what_is_found_again_never_ends(finding: Finding) -> None:
    heard = replace(ALL, replaced={CommittedFile(BATCH, "part-0")})
    assert ended_findings({7: finding}, [finding], heard, account(ordinal=2)) == {}
