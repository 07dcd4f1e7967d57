"""A ledger that was lost becomes what it was: from manifests and files alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.rebuilding.rebuild_report import NOT_IN_MANIFESTS
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.effects import Countdown, Crash
from tests.support.landed_feed import assert_same, directories, land
from tests.support.ledger_account import account_of
from tests.support.ledger_server import OWNER_ROLE
from tests.support.repaired import repaired
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story


def test_an_empty_ledger_becomes_what_it_was(story: Story, lose: Callable[[Story], Story]) -> None:
    land(story)
    story.broker.logs[1].append(Kind.RECORD, 5)
    land(story)
    before = account_of(story)
    after = lose(story)
    report = rebuild(after.services())
    assert report.is_whole
    assert not report.findings
    assert len(report.entered) == len(directories(story))
    assert report.not_known == NOT_IN_MANIFESTS
    assert_same(after, before)
    assert rebuild(after.services()).entered == []


def test_ids_and_texts_are_the_manifests_own(story: Story, lose: Callable[[Story], Story]) -> None:
    land(story)
    after = lose(story)
    rebuild(after.services())
    records = after.services().ledger.batches(FEED)
    assert len(records) == len(directories(story)) > 0
    for record in records:
        plan = record.status.plan
        committed = after.services().ledger.committed_batch(plan.batch_id)
        assert committed
        (directory,) = [each for each in directories(story) if each.name.endswith(plan.batch_id)]
        written = json.loads((directory / "_tally.json").read_text())
        kept = json.loads(committed.manifest_text)
        for document in (written, kept):
            document["token"] = 0
            for each in document["ranges"]:
                each["generation_id"] = 0
        assert kept == written
        assert record.status.state is BatchState.PUBLISHED


def test_a_ledger_that_gives_out_longer_ids_misses_no_manifest(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    """A ledger of many feeds: its ids are no more those of the manifests."""
    land(story)
    after = lose(story)
    with psycopg.connect(after.dsn, user=OWNER_ROLE) as connection:
        connection.execute("ALTER SEQUENCE generation_generation_id_seq RESTART WITH 123456")
    assert rebuild(after.services()).is_whole
    assert reconcile(after.services()).findings == ()
    assert directories(after)
    for each in directories(after):
        batch_id = BatchId(each.name.removeprefix("batch="))
        committed = after.services().ledger.committed_batch(batch_id)
        assert committed
        assert (each / "_tally.json").read_text() == committed.manifest_text


def test_an_empty_ledger_and_an_empty_directory_are_nothing_to_do(story: Story) -> None:
    report = rebuild(story.services())
    assert (report.entered, report.is_whole) == ([], True)


def test_a_dry_run_changes_nothing_and_says_the_same(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    after = lose(story)
    dry = rebuild(after.services(), dry_run=True)
    assert after.services().ledger.generations(FEED) == {}
    real = rebuild(after.services())
    assert [each.batch for each in dry.entered] == [each.batch for each in real.entered]
    assert (dry.opened, dry.left_out) == (real.opened, real.left_out)


def test_a_re_created_topic_keeps_its_lives_apart(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    story.broker.recreate(partitions=3)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 12)
    land(story)
    before = account_of(story)
    after = lose(story)
    report = rebuild(after.services())
    assert {(each.partition.partition, each.ordinal) for each in report.opened} == {
        (0, 1), (1, 1), (0, 2), (1, 2), (2, 2),
    }  # fmt: skip
    assert_same(after, before)


def test_the_account_begins_at_the_oldest_manifest(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    story.broker.logs[0].log_start_offset = 4
    land(story)
    after = lose(story)
    rebuild(after.services())
    (account, *_) = after.services().ledger.generations(FEED)[0]
    assert (account.first_offset, account.frontier) == (4, 15)


def test_what_lies_between_manifests_is_landed_or_lost_by_the_next_plan(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    gone = next(each for each in directories(story) if "" in files_of(each, 0))
    ranges = json.loads((gone / "_tally.json").read_text())["ranges"]
    shutil.rmtree(gone)
    after = lose(story)
    report = rebuild(after.services())
    assert report.is_whole
    assert not after.services().ledger.lost(FEED)
    landed = land(after).plan.all_batches
    assert {
        (each.offsets.partition.partition, each.offsets.from_offset, each.offsets.until_offset)
        for batch in landed
        for each in batch.ranges
    } == {(each["partition"], each["from_offset"], each["until_offset"]) for each in ranges}
    assert reconcile(after.services()).verdict is Verdict.PROVEN_OK


def files_of(directory: Path, partition: int) -> list[str]:
    """Not empty when the batch has a range of the partition that is not its log's first."""
    ranges = json.loads((directory / "_tally.json").read_text())["ranges"]
    return ["" for each in ranges if each["partition"] == partition and each["from_offset"] > 0]


def test_other_roots_are_looked_at_when_they_are_given(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    land(story)
    before = account_of(story)
    after = lose(story)
    services = after.services()
    moved = services.feed.target.model_copy(update={"root": "/elsewhere"})
    elsewhere = replace(services, feed=services.feed.model_copy(update={"target": moved}))
    assert rebuild(elsewhere).entered == []
    assert rebuild(elsewhere, ["/landing"]).is_whole
    assert account_of(after) == before


@pytest.mark.parametrize("after_effect", [False, True], ids=["before", "after"])
def test_a_rebuild_that_dies_anywhere_is_taken_up_by_the_next(
    story: Story, lose: Callable[[Story], Story], after_effect: bool
) -> None:
    land(story)
    repaired(story.services(), story.services().ledger.files(FEED)[0])
    before = account_of(story)
    clean = Countdown()
    rebuild(lose(story).services(clean))
    assert len(clean.seen) > 15
    for at in range(len(clean.seen)):
        dying = lose(story)
        with pytest.raises(Crash):
            rebuild(dying.services(Countdown(at, after=after_effect)))
        rebuild(dying.services())
        assert account_of(dying) == before, (at, clean.seen[at])


def test_a_rebuild_may_be_taken_up_at_once(story: Story, lose: Callable[[Story], Story]) -> None:
    """Its own claims are no other run's, however long their lease is."""
    land(story)
    before = account_of(story)
    clean = Countdown()
    rebuild(lose(story).services(clean, lease=timedelta(minutes=1)))
    for at in range(1, len(clean.seen), 2):
        dying = lose(story)
        with pytest.raises(Crash):
            rebuild(dying.services(Countdown(at, after=True), lease=timedelta(minutes=1)))
        rebuild(dying.services(lease=timedelta(minutes=1)))
        assert account_of(dying) == before
