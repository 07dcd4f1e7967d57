"""Which findings a look ends: neighbouring rows differ in one fact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.rules.closing import Heard, Payloads, ended_findings
from tallystick.domain.rules.findings import Finding, Level, provisional
from tallystick.domain.verdicts import Verdict
from tests.support.builders import (
    BATCH,
    NOON,
    TOPIC_ID,
    a_finding,
    a_snapshot,
    an_account,
    bounds,
    by_partition,
)

SHOWN = a_snapshot({0: bounds(0, 9), 1: bounds(0, 9)})
ALL = Heard(NOON, broker=SHOWN, storage=True)
OF_ROWS = f"rows of batch {BATCH}"
FIRST, OTHER = ({CommittedFile(BATCH, name)} for name in ("part-0", "part-1"))


def found(code: str, level: Level = Level.L2, **changed: object) -> Finding:
    """A finding about offsets [0, 5) of partition 0, generation 1, and about a file."""
    return a_finding(code, level, **{"evidence": {"batch": BATCH, "file": "part-0"}, **changed})


def without(
    partition: int, *, topic_id: str = TOPIC_ID, is_leaderless: bool = True
) -> BrokerSnapshot:
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
    log = an_account(ordinal=ordinal, frontier=frontier, state=state, last_seen_until=9)
    return by_partition(log)


UNLISTED = without(0, is_leaderless=False)
OF_NEW_TOPIC = without(0, is_leaderless=False, topic_id="u")


@pytest.mark.parametrize(
    ("finding", "heard", "accounts", "ends"),
    [
        (found("A8"), ALL, account(), True),
        (found("A8"), replace(ALL, storage=False), account(), False),
        (found("A8"), replace(ALL, broker=None), account(), True),
        (found("A8"), replace(ALL, storage=False, replaced=FIRST), account(), True),
        (found("A8"), replace(ALL, storage=False, replaced=OTHER), account(), False),
        (found("A8", subject=OF_ROWS), ALL, account(), False),
        (found("A8", subject=OF_ROWS), replace(ALL, offsets_read={BATCH: True}), account(), True),
        (found("A8", subject=OF_ROWS), replace(ALL, offsets_read={BATCH: False}), account(), False),
        (found("C1", Level.L3), ALL, account(), False),
        (found("C1", Level.L3), replace(ALL, read_in_full={BATCH: True}), account(), True),
        (found("C1", Level.L3), replace(ALL, read_in_full={BATCH: False}), account(), False),
        (found("C1", Level.L3), replace(ALL, offsets_read={BATCH: True}), account(), False),
        (found("C3", Level.L4), ALL, account(), False),
        (found("C3", Level.L4), replace(ALL, read_in_full={BATCH: True}), account(), False),
        (found("C3", Level.L4), replace(ALL, equal_again={(BATCH, "part-0", 0)}), account(), True),
        (found("C3", Level.L4), replace(ALL, equal_again={(BATCH, "part-0", 1)}), account(), False),
        (found("C3", Level.L4), replace(ALL, equal_again={(BATCH, "part-1", 0)}), account(), False),
        (found("C3", Level.L4), replace(ALL, replaced=FIRST), account(), True),
        (found("N1", Level.L1), ALL, account(), True),
        (found("N1", Level.L1), replace(ALL, broker=None), account(), False),
        (found("N1", Level.L1), replace(ALL, broker=without(0)), account(), False),
        (found("N1", Level.L1), replace(ALL, broker=without(1)), account(), True),
        (found("W1", Level.L1), replace(ALL, broker=without(0)), account(), False),
        (found("N2", Level.L1), replace(ALL, broker=without(0)), account(), False),
        (found("W1", Level.L1), ALL, account(), True),
        (found("W1", Level.L1), replace(ALL, not_told={0}), account(), False),
        (found("W1", Level.L1), replace(ALL, not_told={1}), account(), True),
        (found("N1", Level.L1), replace(ALL, not_told={0}), account(), True),
        (found("A8"), replace(ALL, broker=without(0)), account(), True),
        (found("W1", Level.L1), replace(ALL, broker=UNLISTED), account(), False),
        (found("U1", Level.L1), replace(ALL, broker=UNLISTED), account(), False),
        (found("U1", Level.L1), replace(ALL, broker=OF_NEW_TOPIC), account(), True),
        (found("N1", Level.L1), ALL, {}, True),
        (
            found("N1", Level.L1, evidence={"topic_id": TOPIC_ID}),
            replace(ALL, broker=UNLISTED),
            {},
            False,
        ),
        (found("N1", Level.L1, evidence={}), replace(ALL, broker=UNLISTED), {}, False),
        (
            found("N1", Level.L1, evidence={"topic_id": "s"}),
            replace(ALL, broker=UNLISTED),
            {},
            True,
        ),
        (found("N3", Level.L1), Heard(NOON, broker=None, storage=False), account(), True),
        (found("N3"), replace(ALL, broker=None), account(), True),
        (found("N3"), replace(ALL, storage=False), account(), False),
        (found("U1", Level.L1), ALL, account(), True),
        (found("U1", Level.L1), replace(ALL, broker=None), account(), False),
        (found("U1", Level.L2), replace(ALL, broker=None), account(), True),
        (found("A1", Level.L1), ALL, account(), False),
        (found("A8", Level.L1), ALL, account(), False),
        (found("B3", Level.L3), replace(ALL, read_in_full={BATCH: True}), account(), False),
        (found("B3", Level.L3), replace(ALL, payloads=Payloads.COMPARED), account(), True),
        (found("B3", Level.L3), replace(ALL, payloads=Payloads.NOT_ASKED_FOR), account(), True),
        (found("A3", Level.L1), ALL, account(), False),
        (found("A3", Level.L1), ALL, account(ordinal=2), True),
        (found("A3", Level.L1, verdict=Verdict.UNKNOWN), ALL, account(), False),
        (found("A3", Level.L1, verdict=Verdict.UNKNOWN), ALL, account(ordinal=2), False),
        (provisional(found("A1", Level.L1)), ALL, account(), True),
        (provisional(found("A3", Level.L1)), ALL, account(), True),
        (provisional(found("A1", Level.L1)), replace(ALL, broker=None), account(), False),
        (provisional(found("A1", Level.L1)), replace(ALL, broker=without(0)), account(), False),
        (provisional(found("A1", Level.L1)), replace(ALL, broker=without(1)), account(), True),
        (found("Z5", Level.L1), ALL, account(frontier=4), False),
        (found("Z5", Level.L1), ALL, account(frontier=5), True),
        (found("Z5", Level.L1), ALL, account(ordinal=2, frontier=0), True),
        (found("Z5", Level.L1, generation=2), ALL, account(frontier=5), False),
        (found("Z5", Level.L1), ALL, account(state=GenerationState.STOPPED), False),
        (found("Z5", Level.L1), ALL, account(state=GenerationState.CLOSED), True),
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
        (found("C1", subject="part-0"), found("U1", subject="part-0"), False),
        (found("A8", subject="part-0"), found("U1", subject="part-0"), False),
        (found("C1", subject="part-0"), found("U1", subject="part-1"), True),
        (found("C1", subject="part-0"), found("A8", subject="part-0"), True),
        (found("C1", subject="part-0"), found("U1", Level.L1, subject="part-0"), True),
    ],
)
def test_what_could_not_be_asked_was_not_looked_at(
    finding: Finding, said: Finding, ends: bool
) -> None:
    assert (list(ended_findings({7: finding}, [said], ALL, account())) == [7]) is ends


@pytest.mark.parametrize("is_heard", [True, False])
def test_what_is_provisional_ends_where_a_look_tells_it_no_more(is_heard: bool) -> None:
    finding = provisional(found("A1", Level.L1))
    heard = ALL if is_heard else replace(ALL, broker=None)
    assert (7 in ended_findings({7: finding}, [], heard, account())) is is_heard
    assert ended_findings({7: finding}, [finding], heard, account()) == {}


@pytest.mark.parametrize("finding", [found("A8"), found("A3", Level.L1), found("N1", Level.L1)])
def test_what_is_found_again_never_ends(finding: Finding) -> None:
    heard = replace(ALL, replaced=FIRST)
    assert ended_findings({7: finding}, [finding], heard, account(ordinal=2)) == {}
