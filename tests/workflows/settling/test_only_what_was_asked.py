"""Nothing is given up that was not asked as it lies there; a person's word gives up no more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.states import RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import AttemptId
from tallystick.domain.planning.log_changes import CutClaim, LogChanges
from tallystick.workflows.committing.publishing import publish
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import carry_out, land_feed, settle_and_plan
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.dying_attempts import (
    ALL,
    FIRST,
    ONE,
    SECOND,
    TWO,
    blind,
    expire,
    kept_in,
    landed,
    lost,
    next_run,
    quarantined,
)
from tests.support.meanwhile import Meanwhile
from tests.support.scripted_broker import Kind
from tests.support.story import FEED, Story
from tests.support.unreadable_store import LISTS, unreadable
from tests.workflows.settling.test_asked_by_offsets import halved

LONG = timedelta(hours=1)
THIRD = AttemptId("3" * 16)


def damage(story: Story, attempt_id: AttemptId) -> None:
    """Nobody can prove what the attempt has landed."""
    [file] = (story.directory / "landing" / "_staging").rglob(f"{attempt_id}/data/*.parquet")
    file.write_bytes(file.read_bytes()[:-7])


def claimed_of(story: Story, partition: int) -> BatchPlan:
    """The unfinished batch that claims offsets of this partition alone."""
    [found] = [
        each.plan
        for each in story.services().ledger.accounts(FEED).unfinished
        if [one.offsets.partition.partition for one in each.plan.ranges] == [partition]
    ]
    return found


def test_what_a_dying_run_leaves_while_another_one_settles_is_asked_by_the_next(
    story: Story,
) -> None:
    """It lived when the log was looked at, so nobody has asked what it holds."""
    services = story.services(lease=LONG, max_partitions_per_batch=1)
    dead, living = plan_feed(services, None, ONE).batches
    first = land_batch(services, dead.batch_id, FIRST, ONE)
    second = land_batch(services, living.batch_id, SECOND, ONE)
    assert first
    assert second
    damage(story, FIRST)
    services.ledger.record_failure(first, "killed")
    expire(story)
    settler = story.services()
    store: Any = Meanwhile(
        settler.store, lambda: services.ledger.record_failure(second, "killed"), method="read_back"
    )

    settle_and_plan(replace(settler, store=store), None, TWO)

    assert lost(story) == {(0, 10, 20)}
    assert [FIRST in each.name for each in quarantined(story)] == [True]
    next_run(story)
    assert lost(story) == {(0, 10, 20)}
    assert story.published_offsets()[1] == ALL[1]


def test_files_of_a_batch_that_another_attempt_has_committed_are_given_up(story: Story) -> None:
    batch_id = landed(story).batch_id
    services = story.services()
    with services.ledger.planning(FEED, "orders") as session:
        [batch] = session.accounts().unfinished
        released = [each for each in batch.plan.ranges if each.offsets.partition.partition == 0]
        cuts = [
            CutClaim(
                batch_id,
                each.generation_id,
                each.offsets,
                RangeState.RELEASED,
                FindingCode.SHORT_READ,
            )
            for each in released
        ]
        session.apply(LogChanges(cuts=cuts), None)
    second = land_batch(services, batch_id, SECOND, ONE)
    assert second
    verify_and_commit(services, second)
    publish(services, batch_id)
    expire(story)

    report = next_run(story)

    assert lost(story) == {(0, 10, 20)}
    assert len(kept_in(report)) == 1
    assert [FIRST in each.name for each in quarantined(story)] == [True]
    assert story.staged() == []


def test_files_wait_for_a_batch_that_claims_their_offsets_and_can_not_be_asked(
    story: Story,
) -> None:
    halved(story)
    assert land_batch(story.services(), claimed_of(story, 0).batch_id, THIRD, TWO)
    expire(story)

    settle_and_plan(unreadable(story, THIRD, LISTS), None, TWO)

    assert quarantined(story) == []
    assert lost(story) == set()


def test_a_person_gives_up_what_can_not_be_read_before_what_it_holds_up(story: Story) -> None:
    """Only then can the files of the halved batch be claimed again, for both partitions."""
    halved(story)
    assert land_batch(story.services(), claimed_of(story, 0).batch_id, THIRD, TWO)
    expire(story)
    services = unreadable(story, THIRD, LISTS)
    reconcile(services)

    repair_feed(services, story.named(), TWO)

    assert any(THIRD in each.name for each in quarantined(story))
    assert not any(FIRST in each.name for each in quarantined(story))
    next_run(story)
    assert lost(story) == set()
    assert story.published_offsets() == ALL


def test_files_that_can_not_be_claimed_again_hold_up_no_search_for_a_record(story: Story) -> None:
    """They hold it, and another partition of theirs is landed by now."""
    halved(story)
    assert carry_out(story.services(), claimed_of(story, 1).batch_id, TWO).directory

    for _ in range(3):
        report = land_feed(blind(story), None, TWO)

    codes = {each.finding.code for each in report.on_record}
    assert FindingCode.UNREADABLE_RECORD in codes


def test_what_is_on_record_as_lost_is_looked_for_in_quarantine_no_more(story: Story) -> None:
    landed(story)
    damage(story, FIRST)
    expire(story)
    assert len(kept_in(next_run(story))) == 1
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
        log.log_start_offset = 30

    report = land_feed(unreadable(story, "/unproven/batch=", LISTS), None, TWO)

    assert (0, 25, 30) in lost(story)
    assert kept_in(report) == set()
