"""What a repair can't land again: it is told as a loss, or the file that holds it stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.domain.completeness import Proof
from tallystick.domain.findings import FindingCode
from tallystick.domain.identities import Owner
from tallystick.domain.snapshot import BrokerSnapshot
from tallystick.domain.states import Verdict
from tallystick.ports.findings import StoredFinding
from tallystick.workflows.reconciliation import reconcile
from tallystick.workflows.repairing import repair_feed
from tallystick.workflows.reporting import feed_completeness
from tallystick.workflows.run import land_feed
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("one")


class TickingBroker(ScriptedBroker):
    """Every look is a minute later than the one before."""

    looks = 0

    def snapshot(self, topic: str) -> BrokerSnapshot:
        self.looks += 1
        seen = super().snapshot(topic)
        return replace(seen, taken_at=seen.taken_at + timedelta(minutes=self.looks))


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions of ten records, landed in one batch, and five more each in another."""
    broker = TickingBroker("orders")
    story = Story(ledger_databases(), tmp_path, broker)
    for count in (10, 5):
        for log in broker.logs.values():
            log.append(Kind.RECORD, count)
        land_feed(story.services(), None, OWNER)
    return story


def first_file(story: Story) -> Path:
    """The file of the first batch: both partitions' [0, 10)."""
    name = story.services().ledger.files(FEED)[0].file.name
    return next((story.directory / "landing" / FEED).rglob(name))


def standing(story: Story) -> list[StoredFinding]:
    return list(story.services().ledger.findings(FEED))


def proof(story: Story) -> Proof:
    """If all is proven up to the newest look."""
    found = feed_completeness(story.services().ledger, FEED).proven
    assert found.newest_look_at
    return found.proof_of(found.newest_look_at)


@pytest.mark.parametrize("log_start", [4, 10])
def test_a_repair_that_loses_rows_leaves_a_finding_about_them(story: Story, log_start: int) -> None:
    first_file(story).unlink()
    reconcile(story.services())
    story.broker.logs[0].log_start_offset = log_start
    report = repair_feed(story.services(), (), OWNER)
    assert not report.errors
    [loss] = standing(story)
    found = loss.finding
    assert (found.code, found.verdict) == (FindingCode.PHANTOM_COMMIT, Verdict.PROVEN_LOSS)
    assert (found.partition, found.from_offset, found.until_offset) == (0, 0, log_start)
    assert [each.finding_id for each in report.plan.not_mended] == [loss.finding_id]
    assert loss.finding_id not in report.closed
    assert proof(story) is not Proof.PROVEN
    reconcile(story.services())
    assert [each.finding_id for each in standing(story)] == [loss.finding_id]
    again = repair_feed(story.services(), (), OWNER)
    assert [each.finding_id for each in again.plan.not_mended] == [loss.finding_id]
    assert not again.batches
