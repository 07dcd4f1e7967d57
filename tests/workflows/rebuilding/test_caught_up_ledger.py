"""A ledger from an older backup catches up with what is published since."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from tallystick.domain.identities import Owner
from tallystick.errors import BatchBusy
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.rebuilding.rebuild import rebuild
from tests.support.landed_feed import OWNER, assert_same, hidden, land
from tests.support.ledger_account import account_of
from tests.support.repaired import repaired
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story


def test_a_ledger_from_an_older_backup_is_caught_up(
    story: Story, backup: Callable[[Story], Callable[[], Story]]
) -> None:
    land(story)
    restored = backup(story)
    repaired(story.services(), story.services().ledger.files(FEED)[0])
    story.broker.logs[0].append(Kind.RECORD, 9)
    land(story)
    story.broker.recreate()
    story.broker.logs[1].append(Kind.RECORD, 3)
    land(story)
    before = account_of(story)
    after = restored()
    known = {each.status.plan.batch_id for each in after.services().ledger.batches(FEED)}
    report = rebuild(after.services())
    assert report.is_whole
    assert not known & {each.batch.plan.batch_id for each in report.entered}
    now = account_of(after)
    assert now["files"] == before["files"]
    assert now["committed"] == before["committed"]
    assert {key: logs for key, logs in before["logs"].items() if key[1] == 1} == {
        key: logs for key, logs in now["logs"].items() if key[1] == 1
    }
    assert land(after).plan.all_batches == ()


def test_an_unfinished_batch_that_is_published_is_finished(
    story: Story, backup: Callable[[Story], Callable[[], Story]]
) -> None:
    services = story.services()
    plan = plan_feed(services, None, OWNER)
    services.ledger.close()
    restored = backup(story)
    land(story)
    before = account_of(story)
    after = restored()
    report = rebuild(after.services())
    assert [each.batch.plan.batch_id for each in report.entered] == [
        each.batch_id for each in plan.all_batches
    ]
    assert report.abandoned == ()
    assert_same(after, before)


def test_an_unfinished_batch_that_is_in_the_way_is_given_up(
    story: Story, backup: Callable[[Story], Callable[[], Story]]
) -> None:
    restored = backup(story)
    land(story)
    before = account_of(story)
    after = restored()
    with hidden(after):
        stale = plan_feed(after.services(), None, Owner("restored"))
    report = rebuild(after.services())
    assert {each.plan.batch_id for each in report.abandoned} == {
        each.batch_id for each in stale.all_batches
    }
    assert account_of(after)["files"] == before["files"]
    assert land(after).plan.all_batches == ()


def test_nothing_is_changed_while_a_living_run_is_in_the_way(
    story: Story, backup: Callable[[Story], Callable[[], Story]]
) -> None:
    restored = backup(story)
    land(story)
    after = restored()
    with hidden(after):
        plan_feed(after.services(lease=timedelta(minutes=1)), None, Owner("alive"))
    with pytest.raises(BatchBusy, match="held by alive") as caught:
        rebuild(after.services())
    assert caught.value.retry
    assert after.services().ledger.files(FEED) == []


def test_a_loss_on_record_is_not_contradicted(
    story: Story, backup: Callable[[Story], Callable[[], Story]]
) -> None:
    land(story)
    story.broker.logs[1].append(Kind.RECORD, 5)
    restored = backup(story)
    land(story)
    story.broker.logs[1].log_start_offset = 10
    after = restored()
    with hidden(after):
        land_feed(after.services(), None, OWNER)
    report = rebuild(after.services())
    reasons = [reason for each in report.left_out for reason in each.reasons]
    assert "orders-1 [7, 10) is recorded as lost" in reasons
    (double,) = report.findings
    assert (double.partition, double.from_offset, double.until_offset) == (1, 10, 12)
    (kept,) = [
        each.plan.batch_id
        for each in after.services().ledger.files(FEED)
        if (1, 10) in {(one.partition, one.first_offset) for one in each.file.slices}
    ]
    assert double.evidence["kept_batch"] == kept
    assert f"orders-1 [10, 12) is in batch {kept} already" in reasons
