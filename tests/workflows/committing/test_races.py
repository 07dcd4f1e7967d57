"""Two of everything at once: planners, committers, and a zombie that wakes up too late."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.offsets.ranges import overlaps_in
from tallystick.errors import AttemptFenced, BatchBusy, IngestionError
from tallystick.ledger.ledger import Ledger
from tallystick.workflows.committing.publishing import finish, publish
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.landing.sweeping import sweep
from tallystick.workflows.planning.plan import dry_run, plan_feed
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

ONE, OTHER = Owner("one"), Owner("other")
FIRST, SECOND = AttemptId("1" * 16), AttemptId("2" * 16)
LONG = timedelta(seconds=60)


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    return Story(ledger_databases(), tmp_path, broker)


def test_two_planners_never_claim_the_same_offset(story: Story) -> None:
    with ThreadPoolExecutor() as pool:
        plans = list(
            pool.map(
                lambda n: plan_feed(story.services(lease=LONG), None, Owner(f"run {n}")), range(6)
            )
        )
    ranges = [each.offsets for plan in plans for batch in plan.batches for each in batch.ranges]
    assert overlaps_in(ranges) == ()
    assert sum(each.span for each in ranges) == 20


def test_a_living_attempt_is_not_disturbed(story: Story) -> None:
    services = story.services(lease=LONG)
    batch = plan_feed(services, None, ONE).batches[0]
    land_batch(services, batch.batch_id, FIRST, ONE)
    with pytest.raises(BatchBusy, match="held by one"):
        land_batch(story.services(lease=LONG), batch.batch_id, SECOND, OTHER)
    assert plan_feed(story.services(lease=LONG), None, OTHER).all_batches == ()


def test_a_retry_of_the_same_owner_takes_over_at_once(story: Story) -> None:
    services = story.services(lease=LONG)
    batch = plan_feed(services, None, ONE).batches[0]
    land_batch(services, batch.batch_id, FIRST, ONE)
    second = land_batch(story.services(lease=LONG), batch.batch_id, SECOND, ONE)
    assert second
    assert second.token == 2


def test_a_zombie_that_wakes_up_after_adoption_commits_nothing(story: Story) -> None:
    zombie = story.services()
    batch = plan_feed(zombie, None, ONE).batches[0]
    asleep = land_batch(zombie, batch.batch_id, FIRST, ONE)
    assert asleep
    report = land_feed(story.services(), None, OTHER)
    assert [each.batch_id for each in report.plan.adopted] == [batch.batch_id]
    before = story.published_offsets()
    with pytest.raises(AttemptFenced, match="attempt number 2 has taken over"):
        verify_and_commit(zombie, asleep)
    assert story.published_offsets() == before == {0: list(range(10)), 1: list(range(10))}


def test_a_zombie_that_wakes_up_before_the_rival_commits_is_fenced_too(story: Story) -> None:
    zombie, rival = story.services(), story.services()
    batch = plan_feed(zombie, None, ONE).batches[0]
    asleep = land_batch(zombie, batch.batch_id, FIRST, ONE)
    awake = land_batch(rival, batch.batch_id, SECOND, OTHER)
    assert asleep
    assert awake
    with pytest.raises(AttemptFenced):
        verify_and_commit(zombie, asleep)
    assert verify_and_commit(rival, awake)
    publish(rival, batch.batch_id)
    assert sweep(story.services()) == 2
    assert story.staged() == []
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}


def test_a_commit_between_look_and_attempt_leaves_nothing_to_land(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    zombie, rival = story.services(), story.services()
    batch = plan_feed(zombie, None, ONE).batches[0]
    asleep = land_batch(zombie, batch.batch_id, FIRST, ONE)
    assert asleep
    assert plan_feed(rival, None, OTHER).adopted
    begin = Ledger.begin_attempt

    def begin_too_late(*args: Any, **more: Any) -> Attempt | None:
        verify_and_commit(zombie, asleep)  # it wakes up, and its token is still the newest
        return begin(*args, **more)

    monkeypatch.setattr(Ledger, "begin_attempt", begin_too_late)
    assert land_batch(rival, batch.batch_id, SECOND, OTHER) is None
    publish(rival, batch.batch_id)
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}


def test_two_committers_of_one_batch_commit_it_once(story: Story) -> None:
    services = story.services()
    batch = plan_feed(services, None, ONE).batches[0]
    attempts = [
        land_batch(story.services(), batch.batch_id, attempt, owner)
        for attempt, owner in ((FIRST, ONE), (SECOND, OTHER))
    ]

    def commit(number: int) -> str:
        attempt = attempts[number]
        assert attempt
        try:
            return str(verify_and_commit(story.services(), attempt))
        except IngestionError as error:
            return type(error).__name__

    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(commit, range(2)))
    assert answers[0] == "AttemptFenced"
    assert "committed" in answers[1]
    assert len(services.ledger.files(FEED)) == 1


def test_ten_publishers_of_one_batch_publish_it_once(story: Story) -> None:
    services = story.services()
    batch = plan_feed(services, None, ONE).batches[0]
    attempt = land_batch(services, batch.batch_id, FIRST, ONE)
    assert attempt
    verify_and_commit(services, attempt)
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda n: publish(story.services(), batch.batch_id), range(10)))
    assert len(set(found)) == 1
    assert story.published_offsets() == {0: list(range(10)), 1: list(range(10))}
    assert services.ledger.batch(batch.batch_id).state is BatchState.PUBLISHED
    assert finish(services) == []


def test_the_sweeper_spares_whole_attempts_until_one_of_them_is_committed(story: Story) -> None:
    services = story.services()
    batch = plan_feed(services, None, ONE).batches[0]
    land_batch(services, batch.batch_id, FIRST, ONE)
    landed = land_batch(story.services(), batch.batch_id, SECOND, OTHER)
    assert landed
    assert sweep(services) == 0
    assert all(any(id_ in each for each in story.staged()) for id_ in (FIRST, SECOND))

    verify_and_commit(services, landed)

    assert sweep(services) == 1
    assert not any(FIRST in each for each in story.staged())


def test_a_dry_run_changes_nothing(story: Story) -> None:
    before = dry_run(story.services(), None)
    again = dry_run(story.services(), None)
    assert before.planned == again.planned == 20
    assert story.services().ledger.batches(FEED) == []
    assert plan_feed(story.services(), None, ONE).planned == 20
