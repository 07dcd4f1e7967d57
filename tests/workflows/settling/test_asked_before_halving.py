"""A batch that fails again and again: what its attempts hold is committed, or the log has it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed, settle_and_plan
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import begin_repair
from tests.support.dying_attempts import (
    FIRST,
    ONE,
    SECOND,
    THREE,
    TWO,
    blind,
    expire,
    landed,
    lost,
    next_run,
    record_proof,
)
from tests.support.story import FEED, Story
from tests.support.unreadable_store import LISTS, unreadable
from tests.workflows.settling.test_attempts_nobody_can_ask import quarantine

LANDED = {0: list(range(20)), 1: list(range(20))}


def tried_twice(story: Story, *, is_proven: bool) -> Attempt:
    """Two attempts have landed one batch and died; of the first there is a proof."""
    first = landed(story)
    if is_proven:
        record_proof(story.services(), first)
    [adopted] = plan_feed(story.services(), None, ONE).adopted
    assert land_batch(story.services(), adopted.batch_id, SECOND, ONE)
    return first


def damage(story: Story) -> None:
    """Nobody can prove what the attempts have landed."""
    for file in (story.directory / "landing" / "_staging").rglob("*.parquet"):
        file.write_bytes(file.read_bytes()[:-7])


@pytest.mark.parametrize("is_proven", [True, False], ids=["proven", "whole"])
def test_what_can_be_committed_is_committed_and_its_batch_left_whole(
    story: Story, is_proven: bool
) -> None:
    first = tried_twice(story, is_proven=is_proven)

    report = settle_and_plan(story.services(), None, TWO)

    assert [each.batch_id for each in report.rescued] == [first.batch_id]
    assert not report.batches
    assert not report.findings
    next_run(story)
    assert story.published_offsets() == LANDED


def test_a_batch_of_which_nothing_can_be_committed_is_halved(story: Story) -> None:
    first = tried_twice(story, is_proven=False)
    damage(story)

    report = plan_feed(story.services(), None, TWO)

    assert len(report.batches) == 2
    assert story.services().ledger.batch(first.batch_id).state is BatchState.ABANDONED


def test_a_batch_that_can_not_be_read_is_halved_while_the_log_has_it_and_lost_never(
    story: Story,
) -> None:
    first = tried_twice(story, is_proven=True)
    damage(story)
    services = unreadable(story, FIRST, LISTS)

    assert len(settle_and_plan(services, None, TWO).batches) == 2

    expire(story)
    land_feed(services, None, THREE)
    assert lost(story) == set()
    assert any(FIRST in each for each in story.staged())
    quarantine(story, first)
    land_feed(services, None, THREE)
    assert lost(story) == {(0, 10, 20), (1, 10, 20)}


@pytest.mark.parametrize(("log_start", "is_halved"), [(10, True), (11, False)])
def test_a_batch_is_left_whole_as_soon_as_the_log_has_not_all_of_it(
    story: Story, log_start: int, is_halved: bool
) -> None:
    """Its files are the only copy of one offset then."""
    first = tried_twice(story, is_proven=False)
    services = unreadable(story, "data/")
    for log in story.broker.logs.values():
        log.log_start_offset = log_start

    report = settle_and_plan(services, None, TWO)

    assert (len(report.batches) == 2) is is_halved
    assert ([each.batch_id for each in report.adopted] == [first.batch_id]) is not is_halved
    assert lost(story) == set()
    next_run(story)
    assert lost(story) == set()
    assert next_run(story).plan.findings == ()
    assert story.published_offsets() == LANDED


def a_proven_repair(story: Story) -> BatchId:
    """A repair of one missing file; of its first attempt, which died, there is a proof."""
    next_run(story)
    file = story.services().ledger.files(FEED)[0]
    for each in (story.directory / "landing" / FEED).rglob(file.file.name):
        each.unlink()
    reconcile(story.services())
    [batch] = begin_repair(story.services(), story.named(), ONE).batches
    first = land_batch(story.services(), batch.batch_id, FIRST, ONE)
    assert first
    record_proof(story.services(), first)
    return batch.batch_id


def test_a_repair_that_fails_again_and_again_is_committed_from_what_it_has_proven(
    story: Story,
) -> None:
    repair = a_proven_repair(story)
    assert land_batch(story.services(), repair, SECOND, ONE)

    report = land_feed(story.services(), None, TWO)

    assert [each.batch_id for each in report.plan.rescued] == [repair]
    assert story.published_offsets() == LANDED
    assert reconcile(story.services()).verdict is Verdict.PROVEN_OK


def test_a_repair_of_a_topic_that_was_made_again_is_asked_first(story: Story) -> None:
    """Its proof is of rows that the new log has nowhere."""
    repair = a_proven_repair(story)
    story.broker.recreate()

    land_feed(unreadable(story, FIRST), None, TWO)
    assert story.services().ledger.batch(repair).state is not BatchState.ABANDONED
    report = next_run(story)

    assert [each.batch_id for each in report.plan.rescued] == [repair]
    assert story.published_offsets() == LANDED
    assert lost(story) == set()


@pytest.mark.parametrize("is_proven", [True, False], ids=["proven", "whole"])
def test_no_offset_is_set_aside_that_an_earlier_attempt_has_read(
    story: Story, is_proven: bool
) -> None:
    """Its batch is over then, and nothing of what the attempt holds can be committed."""
    first = landed(story)
    if is_proven:
        record_proof(story.services(), first)

    land_feed(blind(story), None, TWO)
    assert story.services().ledger.batch(first.batch_id).state is BatchState.LANDING
    report = land_feed(blind(story), None, TWO)

    assert [each.batch_id for each in report.plan.rescued] == [first.batch_id]
    assert FindingCode.UNREADABLE_RECORD not in {each.code for each in report.findings}
    assert story.published_offsets() == LANDED


def test_no_offset_is_set_aside_while_an_earlier_attempt_can_not_be_read(story: Story) -> None:
    first = landed(story)
    record_proof(story.services(), first)
    damage(story)
    services = replace(unreadable(story, FIRST, LISTS), spark=blind(story).spark)

    for _ in range(4):
        report = land_feed(services, None, TWO)

    assert FindingCode.UNREADABLE_RECORD not in {each.finding.code for each in report.on_record}
    quarantine(story, first)
    for _ in range(2):
        report = land_feed(services, None, TWO)
    assert FindingCode.UNREADABLE_RECORD in {each.finding.code for each in report.on_record}
