"""Repair of rows that vanished between their commit and their publishing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import AttemptId, BatchId, Owner
from tallystick.domain.rules.findings import FindingCode
from tallystick.errors import ManifestMismatch, PublishedDataMissing
from tallystick.workflows.committing.publishing import finish, publish
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import dry_repair, repair_feed
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

OWNER = Owner("one")
ALL = {0: list(range(15)), 1: list(range(15))}


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """Ten records of two partitions are published, five more committed and in staging."""
    broker = ScriptedBroker("orders")
    story = Story(ledger_databases(), tmp_path, broker)
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    land_feed(story.services(), None, OWNER)
    for log in broker.logs.values():
        log.append(Kind.RECORD, 5)
    services = story.services()
    [batch] = plan_feed(services, None, OWNER).batches
    attempt = land_batch(services, batch.batch_id, AttemptId("1" * 16), OWNER)
    assert attempt
    verify_and_commit(services, attempt)
    return story


def waiting(story: Story) -> BatchId:
    """The batch that is committed and not published."""
    [batch] = story.services().ledger.unpublished(FEED)
    return batch.plan.batch_id


def staging(story: Story) -> Path:
    return story.directory / "landing" / "_staging"


def codes(story: Story) -> set[FindingCode]:
    return {each.code for each in reconcile(story.services()).findings}


def test_committed_rows_that_vanish_before_the_rename_are_landed_again(story: Story) -> None:
    old = waiting(story)
    shutil.rmtree(staging(story))
    [error] = land_feed(story.services(), None, OWNER).errors
    assert isinstance(error, PublishedDataMissing)
    assert FindingCode.COMMITTED_FILE_MISSING in codes(story)
    report = repair_feed(story.services(), story.named(), OWNER)
    assert not report.errors
    assert story.published_offsets() == ALL
    assert story.services().ledger.batch(old).state is BatchState.PUBLISHED
    assert not land_feed(story.services(), None, OWNER).errors
    assert codes(story) == set()


def test_a_batch_that_lost_a_file_after_its_rename_is_mended_and_published(story: Story) -> None:
    old = waiting(story)
    publish_and_forget(story, old)
    with pytest.raises(ManifestMismatch):
        finish(story.services())
    assert FindingCode.COMMITTED_FILE_MISSING in codes(story)
    assert not repair_feed(story.services(), story.named(), OWNER).errors
    assert story.published_offsets() == ALL
    assert not land_feed(story.services(), None, OWNER).errors
    assert codes(story) == set()


def publish_and_forget(story: Story, batch_id: BatchId) -> None:
    """The directory as a publisher leaves it that dies before the mark; its rows are gone since."""
    published = next((story.directory / "landing" / FEED).rglob("batch=*"))
    target = published.parent / f"batch={batch_id}"
    next((staging(story) / batch_id).iterdir()).joinpath("data").rename(target)
    for each in target.glob("*.parquet"):
        each.unlink()


def test_a_file_that_vanishes_from_staging_is_landed_again(story: Story) -> None:
    old = waiting(story)
    for each in (staging(story) / old).rglob("*.parquet"):
        each.unlink()
    assert FindingCode.COMMITTED_FILE_MISSING in codes(story)
    assert not repair_feed(story.services(), story.named(), OWNER).errors
    assert story.services().ledger.batch(old).state is BatchState.PUBLISHED
    assert story.published_offsets() == ALL
    assert codes(story) == set()


def test_what_still_waits_in_staging_is_left_to_the_next_run(story: Story) -> None:
    [file, *_] = (staging(story) / waiting(story)).rglob("*.parquet")
    whole = file.read_bytes()
    file.unlink()
    reconcile(story.services())
    file.write_bytes(whole)
    reasons = [each.reason for each in dry_repair(story.services(), ()).plan.not_mended]
    assert any("not published yet" in each for each in reasons)


def test_rows_that_come_back_after_their_repair_are_not_published(story: Story) -> None:
    kept = story.directory / "kept"
    shutil.copytree(staging(story), kept)
    shutil.rmtree(staging(story))
    reconcile(story.services())
    services = story.services()
    old = waiting(story)
    repair_feed(services, (), OWNER)
    shutil.copytree(kept, staging(story), dirs_exist_ok=True)
    publish(story.services(), old)
    assert story.published_offsets() == ALL
