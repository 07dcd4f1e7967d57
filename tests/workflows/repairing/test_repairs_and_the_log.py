"""Repair looks at the log and the ledger before it claims: old offsets may be other records now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.report.completeness import Proof
from tallystick.domain.rules.findings import FindingCode
from tallystick.workflows.landing.run import carry_out, land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import feed_completeness
from tallystick.workflows.repairing.repair import begin_repair, repair_feed
from tests.support.scripted_broker import Kind, MinuteByMinute, ScriptedBroker
from tests.support.story import FEED, Story, a_landed_story

OWNER = Owner("one")


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Two partitions of ten records, landed in one batch, and five more each in another."""
    broker = MinuteByMinute("orders")
    return a_landed_story(ledger_databases(), tmp_path, 10, 5, broker=broker)


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
    """Nobody has looked since the cut: the repair finds it."""
    lose_the_oldest_file(story)
    regrow(story, cut_at=5)
    report = repair_feed(story.services(), (), OWNER)
    assert not report.batches
    assert any("orders-0 is stopped" in each.reason for each in report.plan.not_mended)
    assert not [each for each in landed_values(story) if each.startswith(b"other")]
    assert FindingCode.COMMITTED_FILE_MISSING in standing_codes(story)


def test_a_repair_left_behind_is_not_taken_over_when_its_log_was_cut(story: Story) -> None:
    lose_the_oldest_file(story)
    assert begin_repair(story.services(), story.named(), OWNER).batches
    regrow(story, cut_at=5)
    assert not repair_feed(story.services(), story.named(), Owner("other")).batches
    assert not [each for each in landed_values(story) if each.startswith(b"other")]


def test_a_log_that_ends_within_a_missing_file_makes_nothing_lost(story: Story) -> None:
    lose_the_oldest_file(story)
    story.broker.logs[0].cut(5)
    assert not repair_feed(story.services(), (), OWNER).batches
    assert not story.services().ledger.lost(FEED)
    assert FindingCode.COMMITTED_FILE_MISSING in standing_codes(story)


def stop_partition_0(story: Story) -> int:
    """A run finds the cut; the number of the finding that names it."""
    land_feed(story.services(), None, OWNER)
    [number] = [
        each.finding_id
        for each in story.services().ledger.findings(FEED)
        if each.finding.code in (FindingCode.LOG_CUT,)
    ]
    return number


def newest_of_partition_0(story: Story) -> GenerationAccount:
    return story.services().ledger.generations(FEED)[0][-1]


def test_a_cut_beyond_what_was_landed_lands_nothing_again(story: Story) -> None:
    """[15, 20) was claimed when the log was cut at 17: every landed row is as it was."""
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 5)
    plan_feed(story.services(), None, OWNER)
    log.cut(17)
    repair_feed(story.services(), (stop_partition_0(story),), OWNER)
    opened = newest_of_partition_0(story)
    assert (opened.ordinal, opened.first_offset) == (2, 15)
    log.append(Kind.RECORD, 3)
    land_feed(story.services(), None, OWNER)
    assert story.published_offsets() == {0: list(range(20)), 1: list(range(15))}


def test_a_cut_behind_a_gap_leaves_no_offset_of_the_gap_out(
    ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    """[10, 15) was never landed, [15, 20) was: rows may come twice, none may be left out."""
    story = Story(ledger_databases(), tmp_path, ScriptedBroker("orders"))
    log = story.broker.logs[0]
    log.append(Kind.RECORD, 20)
    begun = plan_feed(story.services(max_records_per_batch=5), None, OWNER)
    late = begun.batches[2]
    for each in begun.batches:
        if each is not late:
            carry_out(story.services(), each.batch_id, OWNER)
    log.cut(18)
    repair_feed(story.services(), (stop_partition_0(story),), OWNER)
    land_feed(story.services(), None, OWNER)
    landed = story.published_offsets()[0]
    assert set(range(18)) <= set(landed)
    assert landed.count(0) == 1


def test_a_log_that_is_another_one_under_the_same_epoch_is_landed_from_its_start(
    story: Story,
) -> None:
    """The epochs say that nothing was cut, the last landed record says otherwise: who knows?"""
    for entry in story.broker.logs[0].entries:
        entry.value = b"other"
    repair_feed(story.services(), (stop_partition_0(story),), OWNER)
    assert newest_of_partition_0(story).first_offset == 0


@pytest.mark.parametrize("has_epochs", [True, False], ids=["epochs", "no-epochs"])
def test_what_expired_while_a_partition_was_stopped_is_named(
    story: Story, monkeypatch: pytest.MonkeyPatch, has_epochs: bool
) -> None:
    """Cut at 12; readable up to 60 afterwards, and deleted up to 50 before the operator's word."""
    log = story.broker.logs[0]
    log.cut(12)
    number = stop_partition_0(story)
    log.append(Kind.RECORD, 48)
    log.log_start_offset = 50
    if not has_epochs:
        monkeypatch.setattr(story.broker, "epoch_ends", lambda topic, epochs: {})
    [opened] = repair_feed(story.services(), (number,), OWNER).plan.new_generations
    assert (opened.first_offset, str(opened.expired)) == (12, "orders-0 [12, 50)")
    proven = feed_completeness(story.services().ledger, FEED).proven
    assert proven.proof_of(proven.newest_look_at) is not Proof.PROVEN
    land_feed(story.services(), None, OWNER)
    [(account, lost, code)] = story.services().ledger.lost(FEED)
    assert (account.ordinal, code) == (2, FindingCode.EXPIRED)
    assert str(lost) == "orders-0 [12, 50)"
    assert FindingCode.EXPIRED in standing_codes(story)
    assert newest_of_partition_0(story).frontier == 60


def test_offsets_below_a_cut_are_no_loss_while_the_broker_has_them(story: Story) -> None:
    """Partition 0 is landed anew from 12; a file with [0, 10) of both partitions is missing."""
    story.broker.logs[0].cut(12)
    repair_feed(story.services(), (stop_partition_0(story),), OWNER)
    lose_the_oldest_file(story)
    report = repair_feed(story.services(), (), OWNER)
    assert not report.batches
    assert all(
        "generation 1 of orders-0 is closed" in each.reason for each in report.plan.not_mended
    )
    assert not story.services().ledger.lost(FEED)
    assert FindingCode.COMMITTED_FILE_MISSING in standing_codes(story)


def test_offsets_below_a_cut_are_lost_when_they_expire(story: Story) -> None:
    """What is known to be gone holds up nothing else of its file."""
    story.broker.logs[0].cut(12)
    repair_feed(story.services(), (stop_partition_0(story),), OWNER)
    lose_the_oldest_file(story)
    story.broker.logs[0].log_start_offset = 10
    [batch] = repair_feed(story.services(), story.named(), OWNER).batches
    assert batch.error is None
    assert story.published_offsets()[1] == list(range(15))
    assert [str(lost) for _, lost, _ in story.services().ledger.lost(FEED)] == ["orders-0 [0, 10)"]
