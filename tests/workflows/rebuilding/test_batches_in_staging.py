"""A ledger that was restored, or lost, finishes proven batches that nobody has published."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import AttemptId
from tallystick.domain.verdicts import Verdict
from tallystick.errors import LedgerBehind
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.services import Services
from tests.support.effects import Countdown, Crash
from tests.support.landed_feed import OWNER, land
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story

Backup = Callable[[Story], Callable[[], Story]]


def grown(story: Story) -> Story:
    """Everything is landed, and each partition has five more records."""
    land(story)
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    return story


def planned_and_backed_up(story: Story, backup: Backup) -> Callable[[], Story]:
    services = grown(story).services()
    assert len(plan_feed(services, None, OWNER).batches) == 1
    services.ledger.close()
    return backup(story)


def committed(services: Services) -> Attempt:
    """The batch that is due, committed and not published: its run dies there."""
    [batch] = plan_feed(services, None, OWNER).all_batches
    attempt = land_batch(services, batch.batch_id, AttemptId("1" * 16), OWNER)
    assert attempt
    verify_and_commit(services, attempt)
    return attempt


def expire(story: Story) -> None:
    for log in story.broker.logs.values():
        log.log_start_offset = len(log.entries)
        log.append(Kind.RECORD, 2)


def rows(story: Story) -> int:
    return sum(len(each) for each in story.published_offsets().values())


def test_a_batch_that_the_backup_knows_as_planned_is_named_and_finished(
    story: Story, backup: Backup
) -> None:
    restored = planned_and_backed_up(story, backup)
    attempt = committed(story.services())
    after = restored()
    expire(after)
    [named] = rebuild(after.services(), dry_run=True).entered
    assert named.batch.directory == f"/landing/_staging/{attempt.batch_id}/{attempt.attempt_id}"
    assert after.services().ledger.batch(attempt.batch_id).state is BatchState.PLANNED
    [entered] = rebuild(after.services()).entered
    assert entered.batch.plan.batch_id == attempt.batch_id
    assert "committed from there" in entered.notes[0]
    assert after.services().ledger.batch(attempt.batch_id).state is BatchState.PUBLISHED
    land(after)
    assert rows(after) == 17 + 10 + 4
    assert after.services().ledger.lost(FEED) == []
    assert reconcile(after.services()).verdict is Verdict.PROVEN_OK


def test_without_a_rebuild_a_run_finishes_it_before_it_calls_anything_lost(
    story: Story, backup: Backup
) -> None:
    restored = planned_and_backed_up(story, backup)
    attempt = committed(story.services())
    after = restored()
    expire(after)
    report = land(after)
    assert [each.batch_id for each in report.plan.rescued] == [attempt.batch_id]
    assert rows(after) == 17 + 10 + 4
    assert after.services().ledger.lost(FEED) == []


def test_offsets_are_not_lost_that_a_batch_in_staging_holds_which_the_ledger_forgot(
    story: Story, backup: Backup
) -> None:
    restored = backup(grown(story))
    committed(story.services())
    after = restored()
    expire(after)
    with pytest.raises(LedgerBehind, match="HDFS holds 1 batch that"):
        land_feed(after.services(), None, OWNER)
    report = reconcile(after.services())
    assert report.verdict is Verdict.UNKNOWN, [str(each) for each in report.findings]
    assert after.services().ledger.lost(FEED) == []
    assert rebuild(after.services()).is_whole
    land(after)
    assert rows(after) == 17 + 10 + 4


def test_a_batch_in_staging_is_finished_in_an_empty_ledger_too(
    story: Story, lose: Callable[[Story], Story]
) -> None:
    committed(grown(story).services())
    expire(story)
    after = lose(story)
    assert rebuild(after.services()).is_whole
    land(after)
    assert rows(after) == 17 + 10 + 4
    assert reconcile(after.services()).verdict is Verdict.PROVEN_OK


def test_a_batch_in_staging_is_left_when_its_offsets_were_landed_again(
    story: Story, backup: Backup
) -> None:
    restored = backup(grown(story))
    attempt = committed(story.services())
    after = restored()
    land(after)
    before = after.published_offsets()
    report = rebuild(after.services())
    assert (report.entered, report.left_out, report.findings) == ([], [], ())
    assert report.staged == [f"/landing/_staging/{attempt.batch_id}/{attempt.attempt_id}"]
    assert after.published_offsets() == before


def test_files_that_are_not_as_proven_are_not_finished(story: Story, backup: Backup) -> None:
    restored = planned_and_backed_up(story, backup)
    committed(story.services())
    [file] = (story.directory / "landing" / "_staging").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-9])
    assert rebuild(restored().services()).entered == []


def test_a_batch_that_somebody_is_at_work_on_is_left_to_them(story: Story) -> None:
    grown(story)
    services = story.services(lease=timedelta(minutes=1))
    [batch] = plan_feed(services, None, OWNER).batches
    attempt = land_batch(services, batch.batch_id, AttemptId("1" * 16), OWNER)
    assert attempt
    countdown = Countdown(1, after=True)
    with pytest.raises(Crash):
        verify_and_commit(story.services(countdown, lease=timedelta(minutes=1)), attempt)
    assert rebuild(story.services()).entered == []


@pytest.mark.parametrize("after_effect", [False, True], ids=["before", "after"])
def test_a_rebuild_that_dies_anywhere_is_taken_up_by_the_next(
    story: Story, backup: Backup, after_effect: bool
) -> None:
    restored = planned_and_backed_up(story, backup)
    committed(story.services())
    after = restored()
    expire(after)
    number = 0
    while True:
        countdown = Countdown(number, after=after_effect)
        try:
            rebuild(after.services(countdown))
        except Crash:
            number += 1
            continue
        break
    assert number > 0
    land(after)
    assert rows(after) == 17 + 10 + 4
