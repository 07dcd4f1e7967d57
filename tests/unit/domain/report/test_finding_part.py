"""A finding as documents show it: one shape, on record and not, waived and not."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest

from tallystick.domain.plain_json import to_plain
from tallystick.domain.report.finding_part import FindingPart, finding_part, stored_part
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.rules.waivers import Waiver
from tallystick.domain.verdicts import FindingState, Verdict
from tests.support.builders import a_finding

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
FOUND = a_finding("A1", evidence={"log_start_offset": 5})
STORED = StoredFinding(7, FOUND, NOW, NOW + timedelta(hours=1), FindingState.OPEN)
WAIVER = Waiver(7, "known", "ada", "grace", NOW + timedelta(days=1), STORED.digest)
ON_RECORD = ("number", "state", "first_seen_at", "last_confirmed_at")


def test_a_finding_has_every_key_on_record_and_not() -> None:
    names = [each.name for each in fields(FindingPart)]
    for part in (finding_part(FOUND), stored_part(STORED)):
        assert list(to_plain(part)) == names


def test_what_the_ledger_does_not_know_is_none() -> None:
    part = finding_part(FOUND)
    assert [getattr(part, name) for name in (*ON_RECORD, "waiver")] == [None] * 5
    assert None not in [getattr(stored_part(STORED), name) for name in ON_RECORD]


def test_the_digest_is_that_of_the_evidence_that_is_shown() -> None:
    newer = replace(FOUND, evidence={"log_start_offset": 6})
    assert stored_part(STORED).evidence_digest == STORED.digest
    assert finding_part(newer, STORED).evidence_digest != STORED.digest


@pytest.mark.parametrize("seen", [FOUND, replace(FOUND, verdict=Verdict.WAIVED)])
def test_a_waived_finding_keeps_the_verdict_that_was_found(seen: Finding) -> None:
    part = finding_part(seen, replace(STORED, state=FindingState.WAIVED, waiver=WAIVER))
    assert (part.verdict, part.state) == (Verdict.PROVEN_LOSS, "waived")
    assert part.standing_verdict is Verdict.WAIVED
    assert finding_part(FOUND, STORED).standing_verdict is Verdict.PROVEN_LOSS


@pytest.mark.parametrize(
    ("state", "has_expired", "shown"),
    [
        (FindingState.WAIVED, False, "in force"),
        (FindingState.OPEN, True, "expired"),
        (FindingState.OPEN, False, "void"),
        (FindingState.REMEDIED, False, "void"),
    ],
)
def test_a_waiver_says_what_became_of_it(
    state: FindingState, has_expired: bool, shown: str
) -> None:
    part = stored_part(replace(STORED, state=state, waiver=WAIVER, has_waiver_expired=has_expired))
    assert part.waiver is not None
    assert part.waiver.state == shown
