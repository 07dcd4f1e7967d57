"""Repair looks at the log and the ledger before it claims: old offsets may be other records now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tallystick.domain.findings import FindingCode
from tallystick.domain.identities import Owner
from tallystick.workflows.reconciliation import reconcile
from tallystick.workflows.repairing import begin_repair, repair_feed
from tallystick.workflows.run import land_feed
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("one")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions of ten records, landed in one batch, and five more each in another."""
    broker = ScriptedBroker("orders")
    story = Story(ledger_databases(), tmp_path, broker)
    for count in (10, 5):
        for log in broker.logs.values():
            log.append(Kind.RECORD, count)
        land_feed(story.services(), None, OWNER)
    return story


def lose_the_oldest_file(story: Story) -> None:
    """Partitions 0 and 1, offsets 0 to 9 of both; a reconcile has told it."""
    name = story.services().ledger.files(FEED)[0].file.name
    [file] = (story.directory / "landing" / FEED).rglob(name)
    file.unlink()
    reconcile(story.services())


def regrow(story: Story, cut_at: int) -> None:
    """Partition 0 is cut, and grows again far beyond what was landed."""
    log = story.broker.logs[0]
    log.cut(cut_at)
    log.append(Kind.RECORD, 20, value=b"other")


def landed_values(story: Story) -> list[bytes]:
    """What readers find in partition 0."""
    found = []
    for file in (story.directory / "landing" / FEED).rglob("*.parquet"):
        rows = pq.read_table(file, columns=["partition", "value"], partitioning=None).to_pylist()
        found += [row["value"] for row in rows if row["partition"] == 0]
    return found


def standing_codes(story: Story) -> set[FindingCode]:
    return {each.finding.code for each in story.services().ledger.findings(FEED)}


def test_records_of_a_log_that_was_cut_are_not_landed_as_the_old_rows(story: Story) -> None:
    """Nobody has planned since the cut: in the ledger the partition is open still."""
    lose_the_oldest_file(story)
    regrow(story, cut_at=5)
    report = repair_feed(story.services(), (), OWNER)
    assert not report.batches
    assert any("the log of orders-0 was cut" in each.reason for each in report.plan.not_mended)
    assert not [each for each in landed_values(story) if each.startswith(b"other")]
    assert FindingCode.PHANTOM_COMMIT in standing_codes(story)


def test_a_repair_left_behind_is_not_taken_over_when_its_log_was_cut(story: Story) -> None:
    lose_the_oldest_file(story)
    assert begin_repair(story.services(), (), OWNER).batches
    regrow(story, cut_at=5)
    assert not repair_feed(story.services(), (), Owner("other")).batches
    assert not [each for each in landed_values(story) if each.startswith(b"other")]


def test_a_log_that_ends_within_a_missing_file_makes_nothing_lost(story: Story) -> None:
    lose_the_oldest_file(story)
    story.broker.logs[0].cut(5)
    assert not repair_feed(story.services(), (), OWNER).batches
    assert not story.services().ledger.lost(FEED)
    assert FindingCode.PHANTOM_COMMIT in standing_codes(story)
