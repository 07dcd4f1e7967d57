"""Which findings a look ends: neighbouring rows differ in one fact."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from tallystick.domain.closing import Heard, ended_findings
from tallystick.domain.findings import Finding, FindingCode, Level
from tallystick.domain.generation import GenerationAccount, GenerationState
from tallystick.domain.identities import BatchId, GenerationId
from tallystick.domain.offset_rules import OF_ROWS
from tallystick.domain.ranges import TopicPartition
from tallystick.domain.states import Verdict

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
ALL = Heard(NOON, broker=True, storage=True)
BATCH = BatchId("b" * 16)


def found(code: FindingCode, level: Level = Level.L2, **changed: object) -> Finding:
    """A finding about offsets [0, 5) of partition 0, generation 1."""
    known = Finding(
        code=code,
        verdict=Verdict.PROVEN_LOSS,
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
    )
    return replace(known, **changed)  # type: ignore[arg-type]


def account(ordinal: int = 1, frontier: int = 3) -> dict[int, GenerationAccount]:
    partition = TopicPartition("orders", 0)
    return {
        0: GenerationAccount(
            GenerationId(1),
            partition,
            "c",
            "t",
            ordinal,
            GenerationState.OPEN,
            0,
            frontier,
            (),
            9,
            None,
        )
    }


A8, C1, A3, Z5, A1 = (
    FindingCode.PHANTOM_COMMIT,
    FindingCode.CONTENT_CHANGED,
    FindingCode.TRUNCATED,
    FindingCode.NO_PROGRESS,
    FindingCode.EXPIRED,
)
N1, N3, U1 = FindingCode.UNREAD_PARTITION, FindingCode.UNFINISHED_BATCH, FindingCode.COULD_NOT_TELL
N2, W1, A4 = FindingCode.STALLED_STABLE_OFFSET, FindingCode.LOSS_NEAR, FindingCode.OVERWRITTEN


@pytest.mark.parametrize(
    ("finding", "heard", "accounts", "ends"),
    [
        (found(A8), ALL, account(), True),
        (found(A8), replace(ALL, storage=False), account(), False),
        (found(A8), replace(ALL, broker=False), account(), True),
        (found(A8), replace(ALL, storage=False, replaced={(BATCH, "part-0")}), account(), True),
        (found(A8), replace(ALL, storage=False, replaced={(BATCH, "part-1")}), account(), False),
        (found(A8, subject=OF_ROWS), ALL, account(), False),
        (found(A8, subject=OF_ROWS), replace(ALL, offsets_read={BATCH: True}), account(), True),
        (found(A8, subject=OF_ROWS), replace(ALL, offsets_read={BATCH: False}), account(), False),
        (found(C1, Level.L3), ALL, account(), False),
        (found(C1, Level.L3), replace(ALL, read_in_full={BATCH: True}), account(), True),
        (found(C1, Level.L3), replace(ALL, read_in_full={BATCH: False}), account(), False),
        (found(C1, Level.L3), replace(ALL, offsets_read={BATCH: True}), account(), False),
        (found(N1, Level.L1), ALL, account(), True),
        (found(N1, Level.L1), replace(ALL, broker=False), account(), False),
        (found(N1, Level.L1), replace(ALL, leaderless={0}), account(), False),
        (found(N1, Level.L1), replace(ALL, leaderless={1}), account(), True),
        (found(W1, Level.L1), replace(ALL, leaderless={0}), account(), False),
        (found(N2, Level.L1), replace(ALL, leaderless={0}), account(), False),
        (found(W1, Level.L1), ALL, account(), True),
        (found(W1, Level.L1), replace(ALL, not_told={0}), account(), False),
        (found(W1, Level.L1), replace(ALL, not_told={1}), account(), True),
        (found(N1, Level.L1), replace(ALL, not_told={0}), account(), True),
        (found(A8), replace(ALL, leaderless={0}), account(), True),
        (found(N3, Level.L1), Heard(NOON, broker=False, storage=False), account(), True),
        (found(N3), replace(ALL, broker=False), account(), True),
        (found(N3), replace(ALL, storage=False), account(), False),
        (found(U1, Level.L1), ALL, account(), True),
        (found(U1, Level.L1), replace(ALL, broker=False), account(), False),
        (found(U1, Level.L2), replace(ALL, broker=False), account(), True),
        (found(A1, Level.L1), ALL, account(), False),
        (found(A3, Level.L1), ALL, account(), False),
        (found(A3, Level.L1), ALL, account(ordinal=2), True),
        (found(A4, Level.L1), ALL, account(), False),
        (found(A4, Level.L1, verdict=Verdict.UNKNOWN), ALL, account(), True),
        (
            found(A4, Level.L1, verdict=Verdict.UNKNOWN),
            replace(ALL, leaderless={0}),
            account(),
            False,
        ),
        (found(Z5, Level.L1), ALL, account(frontier=4), False),
        (found(Z5, Level.L1), ALL, account(frontier=5), True),
    ],
    ids=lambda value: value.code.value if isinstance(value, Finding) else "",
)
def test_a_finding_that_was_not_found_again(
    finding: Finding, heard: Heard, accounts: dict[int, GenerationAccount], ends: bool
) -> None:
    ended = ended_findings({7: finding}, [], heard, accounts)
    assert (list(ended) == [7]) is ends
    assert all(reason.endswith(".") for reason in ended.values())


@pytest.mark.parametrize("finding", [found(A8), found(A3), found(N1, Level.L1)])
def test_what_is_found_again_never_ends(finding: Finding) -> None:
    heard = replace(ALL, replaced={(BATCH, "part-0")})
    assert ended_findings({7: finding}, [finding], heard, account(ordinal=2)) == {}
