"""What each witness says, all families together; the entry points that workflows call."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from tallystick.domain.batches.batch import WaitingBatch
from tallystick.domain.batches.states import BatchState, Isolation
from tallystick.domain.logs.outlook import Outlook
from tallystick.domain.logs.sameness import SAME
from tallystick.domain.logs.snapshot import BatchHead, PastBounds
from tallystick.domain.planning.log_changes import Observation
from tallystick.domain.rules.log_findings import lost_finding
from tallystick.domain.rules.witnesses import (
    LedgerWitness,
    Terms,
    broker_findings,
    lasting_findings,
    ledger_findings,
)
from tests.support.builders import (
    BATCH,
    FEED,
    NOON,
    TOPIC,
    a_range,
    a_snapshot,
    an_account,
    bounds,
    by_partition,
)

TERMS = Terms(Isolation.READ_COMMITTED, timedelta(hours=6), timedelta(hours=1), NOON)
KNOWN = by_partition(*(an_account(partition=each, frontier=5, anchor_offset=4) for each in (0, 1)))
SEEN = Observation(
    replace(
        a_snapshot({0: bounds(0, 9, last_stable_offset=5), 1: bounds(0, 9), 3: bounds(0, 2)}),
        leaderless=frozenset({2}),
        retention_ms=1_000,
    ),
    {},
    {},
)
AROUND = Outlook(
    at_frontier={1: BatchHead(5, 6, 0, 100, None)},
    past={0: [PastBounds(NOON - timedelta(hours=1), 8, 5)]},
)


def codes(findings: tuple[object, ...]) -> list[str]:
    return sorted(each.code.value for each in findings)  # type: ignore[attr-defined]


def test_a_run_fails_on_what_lasts_and_not_on_a_partition_that_is_new() -> None:
    assert codes(lasting_findings(FEED, KNOWN, SEEN, AROUND, TERMS)) == ["N2", "U1", "W1"]
    assert codes(broker_findings(FEED, KNOWN, SEEN, AROUND, TERMS)) == ["N1", "N2", "U1", "W1"]


def test_a_sound_broker_says_nothing() -> None:
    seen = Observation(a_snapshot({0: bounds(0, 9), 1: bounds(5, 5)}), {0: SAME}, {})
    assert broker_findings(FEED, KNOWN, seen, Outlook(), TERMS) == ()


def test_the_ledger_says_a_loss_with_the_evidence_of_then() -> None:
    first = lost_finding(FEED, KNOWN[0], a_range(3, 5), "A1", {"log_start_offset": 5})
    facts = LedgerWitness(
        recorded=[first],
        lost=[(KNOWN[0], a_range(3, 5), "A1"), (KNOWN[0], a_range(0, 1), "A5")],
        waiting=[WaitingBatch(BATCH, BatchState.LANDING, 7200)],
        unsound=[(KNOWN[0], [a_range(0, 3), a_range(2, 4)])],
    )
    found = ledger_findings(FEED, TOPIC, KNOWN, facts)
    assert codes(found) == ["A1", "A5", "A6", "A6", "N3"]
    assert first in found


def test_a_sound_ledger_says_nothing() -> None:
    assert ledger_findings(FEED, TOPIC, KNOWN, LedgerWitness((), (), (), ())) == ()
