"""A repair that has not done what it set out to do says so, finding by finding."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.batches.batch import WaitingBatch
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import AttemptId, BatchId, Owner
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.rules.n3_unfinished_batch import unfinished_batches
from tallystick.workflows.committing.retiring import quarantine_stray
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing import repair as repairing
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("one")
HOUR = timedelta(hours=1)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions of ten records, landed in one batch."""
    return a_landed_story(ledger_databases(), tmp_path, 10)


def planned_by_another(story: Story, lease: timedelta) -> BatchId:
    """A batch that waits, with a finding on record that says so."""
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    [batch] = plan_feed(story.services(lease=lease), None, Owner("another")).batches
    waiting = [WaitingBatch(batch.batch_id, BatchState.PLANNED, 36_000.0)]
    found = unfinished_batches(FEED, "orders", waiting)
    story.services().ledger.record_findings(FEED, found)
    return batch.batch_id


def numbers(story: Story, code: FindingCode) -> list[int]:
    found = story.services().ledger.findings(FEED)
    return [each.finding_id for each in found if each.finding.code is code]


def test_an_unfinished_batch_that_another_owner_holds_is_left(story: Story) -> None:
    batch_id = planned_by_another(story, HOUR)
    report = repair_feed(story.services(), (), OWNER)
    [left] = report.not_mended
    assert [left.finding_id] == numbers(story, FindingCode.UNFINISHED_BATCH)
    assert batch_id in left.reason
    assert "another" in left.reason


def test_one_that_is_finished_is_not_left(story: Story) -> None:
    planned_by_another(story, timedelta(0))
    report = repair_feed(story.services(), (), OWNER)
    assert (list(report.errors), report.not_mended) == ([], ())
    assert not report.has_left_batches


def test_a_repair_that_another_owner_has_taken_is_left_with_its_findings(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    next((story.directory / "landing" / FEED).rglob("*.parquet")).unlink()
    reconcile(story.services())
    really = repairing.begin_repair

    def taken_at_once(*arguments: Any) -> Any:
        begun = really(*arguments)
        for each in begun.batches:
            story.services().ledger.begin_attempt(
                each.batch_id, attempt_id=AttemptId("a" * 16), owner=Owner("another"), lease=HOUR
            )
        return begun

    monkeypatch.setattr(repairing, "begin_repair", taken_at_once)
    report = repair_feed(story.services(), story.named(), OWNER)
    assert report.has_left_batches
    assert sorted(each.finding_id for each in report.not_mended) == numbers(
        story, FindingCode.COMMITTED_FILE_MISSING
    )
    assert all("another" in each.reason for each in report.not_mended)


def test_a_stray_that_is_gone_before_it_is_moved_is_left_to_a_reconcile(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    stray = story.directory / "landing" / FEED / "notes.csv"
    stray.write_bytes(b"hello")
    reconcile(story.services())

    def gone(*arguments: Any) -> str | None:
        stray.unlink()
        return quarantine_stray(*arguments)

    monkeypatch.setattr("tallystick.workflows.repairing.storage_steps.quarantine_stray", gone)
    report = repair_feed(story.services(), (), OWNER)
    assert [each.finding_id for each in report.not_mended] == numbers(story, FindingCode.STRAY_FILE)
