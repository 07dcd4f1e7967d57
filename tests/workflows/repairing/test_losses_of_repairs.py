"""What a repair can't land again: it is told as a loss, or the file that holds it stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import Owner
from tallystick.domain.report.completeness import Proof
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import feed_completeness
from tallystick.workflows.repairing.repair import begin_repair, repair_feed
from tests.support.scripted_broker import Kind, MinuteByMinute
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("one")
ALL = {0: list(range(15)), 1: list(range(15))}


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions of ten records, landed in one batch, and five more each in another."""
    broker = MinuteByMinute("orders")
    return a_landed_story(ledger_databases(), tmp_path, 10, 5, broker=broker)


def file_of(story: Story, number: int = 0) -> Path:
    """A committed file, in the order of the commits; the first holds both partitions' [0, 10)."""
    name = story.services().ledger.files(FEED)[number].file.name
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
    file_of(story).unlink()
    reconcile(story.services())
    story.broker.logs[0].log_start_offset = log_start
    report = repair_feed(story.services(), story.named(), OWNER)
    assert not report.errors
    [loss] = standing(story)
    found = loss.finding
    assert (found.code, found.verdict) == (FindingCode.COMMITTED_FILE_MISSING, Verdict.PROVEN_LOSS)
    assert (found.partition, found.from_offset, found.until_offset) == (0, 0, log_start)
    assert [each.finding_id for each in report.plan.not_mended] == [loss.finding_id]
    assert loss.finding_id not in report.closed
    assert proof(story) is not Proof.PROVEN
    reconcile(story.services())
    assert [each.finding_id for each in standing(story)] == [loss.finding_id]
    again = repair_feed(story.services(), story.named(), OWNER)
    assert [each.finding_id for each in again.plan.not_mended] == [loss.finding_id]
    assert not again.batches


def clean_up(story: Story, until: int) -> None:
    """The log's cleaner removes partition 0's records below the offset."""
    for entry in story.broker.logs[0].entries[:until]:
        entry.kind = Kind.COMPACTED


def test_a_file_with_the_only_rows_of_a_cleaned_log_is_left(story: Story) -> None:
    story.broker.is_compacted = True
    file = file_of(story)
    rows = pq.read_table(file, partitioning=None)
    pq.write_table(rows, file, compression="none")  # every row is there, the bytes are others
    reconcile(story.services())
    damaged = [each.finding_id for each in standing(story)]
    clean_up(story, 6)
    report = repair_feed(story.services(), (), OWNER)
    [error] = report.errors
    assert "is there, and holds rows that the log has no more: orders-0: [0, 6)" in str(error)
    assert file.exists()
    assert [each.finding_id for each in standing(story)] == damaged
    for _ in range(2):  # tried again, then given up: the feed goes on
        last = land_feed(story.services(), None, OWNER)
    assert not last.errors
    assert story.published_offsets() == ALL
    reconcile(story.services())
    assert [each.finding_id for each in standing(story)] == damaged


def test_rows_of_a_missing_file_that_the_cleaner_removed_are_told_as_lost(story: Story) -> None:
    story.broker.is_compacted = True
    file_of(story).unlink()
    reconcile(story.services())
    clean_up(story, 6)
    report = repair_feed(story.services(), story.named(), OWNER)
    assert not report.errors
    assert story.published_offsets() == {0: list(range(6, 15)), 1: list(range(15))}
    [loss] = standing(story)
    found = loss.finding
    assert (found.code, found.verdict) == (FindingCode.COMMITTED_FILE_MISSING, Verdict.PROVEN_LOSS)
    assert (found.partition, found.from_offset, found.until_offset) == (0, 0, 6)
    assert [each.finding_id for each in report.plan.not_mended] == [loss.finding_id]
    assert proof(story) is not Proof.PROVEN
    after = reconcile(story.services())
    assert [each.key for each in after.findings] == [found.key]
    assert [each.finding_id for each in standing(story)] == [loss.finding_id]
    file_of(story, -1).unlink()
    reconcile(story.services())
    repair_feed(story.services(), story.named(), OWNER)
    assert [each.finding_id for each in standing(story)] == [loss.finding_id]


def test_holes_that_the_cleaner_passed_are_no_loss_and_count_once(story: Story) -> None:
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 3)
        log.append(Kind.ABORTED, 4)
        log.append(Kind.RECORD, 3)
    land_feed(story.services(), None, OWNER)
    file_of(story, -1).unlink()
    reconcile(story.services())
    story.broker.is_compacted = True
    for log in story.broker.logs.values():
        for entry in log.entries:
            entry.kind = Kind.COMPACTED if entry.kind is Kind.ABORTED else entry.kind
    report = repair_feed(story.services(), story.named(), OWNER)
    assert not report.errors
    assert not report.plan.not_mended
    assert standing(story) == []
    after = reconcile(story.services())
    for each in after.partitions:
        accounted = each.record_count + sum(each.holes.values()) + each.lost_count
        assert accounted == each.account.frontier - each.account.first_offset
        assert each.holes[HoleClass.COMPACTED] == 4


def test_a_file_that_was_put_back_is_not_lost_by_a_repair_begun_before(story: Story) -> None:
    file = file_of(story)
    content = file.read_bytes()
    file.unlink()
    reconcile(story.services())
    story.broker.logs[0].log_start_offset = 10
    begin_repair(story.services(), story.named(), OWNER)  # and dies here
    file.write_bytes(content)  # out of a snapshot of HDFS
    assert reconcile(story.services()).findings == ()
    first = land_feed(story.services(), None, OWNER)  # adopts the repair
    [error] = first.errors
    assert "is there, and holds rows that the log has no more: orders-0: [0, 10)" in str(error)
    for _ in range(2):  # tried again, then given up
        last = land_feed(story.services(), None, OWNER)
    assert not last.errors
    assert story.published_offsets() == ALL
    assert not story.services().ledger.lost(FEED)
    batches = story.services().ledger.batches(FEED)
    assert all(each.status.state.is_over for each in batches)
    assert reconcile(story.services()).findings == ()
    assert standing(story) == []


def test_a_run_that_takes_a_repair_over_tells_what_it_lost(story: Story) -> None:
    file_of(story).unlink()
    reconcile(story.services())
    story.broker.logs[0].log_start_offset = 4
    begin_repair(story.services(), story.named(), OWNER)  # and dies here
    found = land_feed(story.services(), None, OWNER).findings
    assert [(each.code, each.partition, each.from_offset, each.until_offset) for each in found] == [
        (FindingCode.COMMITTED_FILE_MISSING, 0, 0, 4)
    ]
    assert not land_feed(story.services(), None, Owner("next")).findings
