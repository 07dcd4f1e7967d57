"""Findings as documents show them, and by cause: one deleted and one copied file are two."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta

import pytest

from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.batches.stray_file import StrayFile
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.plain_json import to_plain
from tallystick.domain.report.finding_part import FindingPart, finding_part, stored_part
from tallystick.domain.report.troubles import Trouble, troubles_among, troubles_of
from tallystick.domain.rules.a9_stray_file import stray_files
from tallystick.domain.rules.b2_landed_twice import shared_with_stray
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.landed_files import missing_or_changed
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.rules.waivers import Waiver
from tallystick.domain.verdicts import FindingState, Verdict
from tests.support import builders
from tests.support.builders import FEED, TOPIC, a_file, a_manifest
from tests.support.report_documents import a_finding

SIX = range(6)
DELETED = a_file("one.parquet", *(FileSlice(each, 0, 4, 5) for each in SIX))
OTHER = a_file("two.parquet", FileSlice(0, 5, 8, 4))
ROWS = {each: OffsetRuns.of([(0, 3)]) for each in SIX}
COPY = StrayFile("/landing/orders/gen=1/copy.parquet", held=ROWS, kept=ROWS)


def missing(*files: object) -> list[Finding]:
    return list(missing_or_changed(a_manifest(files=files), "/landing/orders/b1", {}))  # type: ignore[arg-type]


def told(findings: list[Finding]) -> list[tuple[str, int]]:
    return [
        (" ".join(one.code for one in each.by_rule), len(each.findings))
        for each in troubles_among(findings, ())
    ]


def test_one_deleted_and_one_copied_file_are_two_troubles_of_thirteen_findings() -> None:
    copied = [*shared_with_stray(FEED, TOPIC, COPY), *stray_files(FEED, TOPIC, [COPY])]
    found = [*copied, *missing(DELETED)]
    assert len(found) == 13
    assert told(found) == [("A8", 6), ("B2 A9", 7)]


def test_two_deleted_files_of_one_batch_are_two_troubles() -> None:
    assert told(missing(DELETED, OTHER)) == [("A8", 6), ("A8", 1)]


def test_a_trouble_says_what_is_to_be_done_once_and_is_as_bad_as_its_worst() -> None:
    lost = a_finding(1, trouble="a file")
    unknown = a_finding(2, trouble="a file", verdict=Verdict.UNKNOWN)
    (trouble,) = troubles_of([unknown, lost])
    assert (trouble.verdict, trouble.numbers) == (Verdict.PROVEN_LOSS, (1, 2))
    assert trouble.next_steps == (lost.next_step,)
    assert str(trouble) == (
        f"findings 1-2: orders-1 [1000, 1500) and 1 more A1 PROVEN_LOSS: {lost.cause}"
        f" {lost.next_step}"
    )


def test_what_people_accept_counts_no_more_in_its_trouble() -> None:
    accepted = a_finding(1, trouble="a file", state=FindingState.WAIVED)
    open_one = a_finding(2, trouble="a file", verdict=Verdict.SUSPECTED)
    assert troubles_of([accepted, open_one])[0].verdict is Verdict.SUSPECTED
    (waived,) = troubles_of([accepted])
    assert (waived.verdict, waived.next_steps) == (Verdict.WAIVED, ())


def test_findings_of_two_feeds_are_two_troubles() -> None:
    one = finding_part(missing(OTHER)[0])
    assert len(troubles_of([one, replace(one, feed="clicks")])) == 2


def test_the_worst_trouble_comes_first() -> None:
    found = troubles_of([a_finding(1, verdict=Verdict.UNKNOWN), a_finding(2), a_finding(3)])
    assert [each.numbers for each in found] == [(2,), (3,), (1,)]
    assert all(isinstance(each, Trouble) for each in found)


NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
FOUND = builders.a_finding("A1", evidence={"log_start_offset": 5})
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
