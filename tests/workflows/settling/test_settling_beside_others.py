"""What others do while a run settles, or a plan lists staging, is neither given up nor lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.identities import AttemptId, BatchId
from tallystick.workflows.landing.run import settle_and_plan
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tallystick.workflows.services import Services
from tests.support.dying_attempts import (
    ALL,
    FIRST,
    ONE,
    SECOND,
    TWO,
    expire,
    landed,
    lost,
    next_run,
    quarantined,
)
from tests.support.meanwhile import Meanwhile
from tests.support.scripted_broker import Kind
from tests.support.story import Story
from tests.workflows.settling.test_asked_by_offsets import halved
from tests.workflows.settling.test_only_what_was_asked import claimed_of

LONG = timedelta(hours=1)


class AfterListing:
    """A store; right after the directory of this name was listed first, `happens`."""

    def __init__(self, store: Any, name: str, happens: Callable[[], object]) -> None:
        self._store, self._name, self._happens = store, name, happens

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def entries(self, path: str) -> Any:
        try:
            return self._store.entries(path)
        finally:
            if path.endswith(f"/{self._name}") and self._name:
                self._name = ""
                self._happens()


def living(services: Services, batch_id: BatchId) -> Attempt:
    """An attempt of another run."""
    attempt_id = AttemptId(services.new_id())
    attempt = services.ledger.begin_attempt(batch_id, attempt_id=attempt_id, owner=ONE, lease=LONG)
    assert attempt
    return attempt


def given_up(story: Story) -> bool:
    return any(FIRST in str(each) for each in quarantined(story))


def test_files_that_a_dying_rival_moves_while_staging_is_listed_are_held(story: Story) -> None:
    """Neither the old place nor the new one was seen with files, and nobody holds the batch."""
    batch_id = landed(story).batch_id
    expire(story)
    rival = story.services()
    attempt = living(rival, batch_id)

    def take_over_and_fail() -> None:
        staging = f"{rival.root}/_staging/{batch_id}"
        rival.store.rename_exclusive(f"{staging}/{FIRST}", f"{staging}/{attempt.attempt_id}")
        rival.ledger.record_failure(attempt, "killed")

    services = story.services()
    store: Any = AfterListing(services.store, batch_id, take_over_and_fail)
    plan_feed(replace(services, store=store), None, TWO)

    assert lost(story) == set()
    next_run(story)
    assert story.published_offsets() == ALL


def test_files_that_a_living_attempt_kept_from_being_claimed_are_not_given_up(
    story: Story,
) -> None:
    """It held their offsets when they were to be read, and no more when they were to be moved."""
    halved(story)
    expire(story)
    batch_id, begun = claimed_of(story, 0).batch_id, list[Attempt]()
    services, rival = story.services(), story.services()
    store: Any = AfterListing(
        services.store, batch_id, lambda: begun.append(living(rival, batch_id))
    )
    ledger: Any = Meanwhile(
        services.ledger,
        lambda: rival.ledger.record_failure(begun[0], "killed"),
        method="accounts",
        call=2,
    )

    settle_and_plan(replace(services, store=store, ledger=ledger), None, TWO)

    assert begun
    assert not given_up(story)
    assert lost(story) == set()
    next_run(story)
    assert lost(story) == set()
    assert story.published_offsets() == ALL


def test_files_that_a_late_writer_shows_after_its_directory_was_asked_are_not_given_up(
    story: Story,
) -> None:
    batch_id = landed(story).batch_id
    expire(story)
    data = story.directory / "landing" / "_staging" / batch_id / FIRST / "data"
    away = data.with_name("away")
    data.rename(away)
    services = story.services()
    ledger: Any = Meanwhile(services.ledger, lambda: away.rename(data), method="accounts", call=2)

    settle_and_plan(replace(services, ledger=ledger), None, TWO)

    assert not given_up(story)
    assert lost(story) == set()
    next_run(story)
    assert story.published_offsets() == ALL


def test_a_person_gives_up_nothing_that_waits_for_living_attempts(story: Story) -> None:
    """Whole files can be claimed again once those have failed."""
    halved(story)
    expire(story)
    reconcile(story.services())
    rival, numbers = story.services(), story.named()
    begun = [living(rival, claimed_of(story, number).batch_id) for number in (0, 1)]

    repair_feed(story.services(), numbers, TWO)

    assert not given_up(story)
    for each in begun:
        rival.ledger.record_failure(each, "killed")
    next_run(story)
    assert lost(story) == set()
    assert story.published_offsets() == ALL


def test_what_expires_between_the_look_and_the_asking_is_no_reason_to_give_up(
    story: Story,
) -> None:
    """The log had one of two holes when it was looked at, and none when it was asked."""
    for log in story.broker.logs.values():
        log.entries[10].kind = log.entries[11].kind = Kind.CONTROL
    landed(story)
    expire(story, 11)

    def expire_more() -> None:
        for log in story.broker.logs.values():
            log.log_start_offset = 15

    services = story.services()
    broker: Any = Meanwhile(services.broker, expire_more, method="snapshot")
    settle_and_plan(replace(services, broker=broker), None, TWO)

    next_run(story)
    assert lost(story) == {(0, 10, 12), (1, 10, 12)}
    assert story.published_offsets()[0] == [*range(10), *range(12, 25)]


def test_no_end_is_lost_while_a_batch_that_this_ledger_never_saw_may_hold_it(story: Story) -> None:
    """Nobody can prove the hole again, and the other files may have a row there."""
    for log in story.broker.logs.values():
        log.entries[10].kind = Kind.CONTROL
    batch_id = landed(story).batch_id
    staging = story.directory / "landing" / "_staging"
    shutil.copytree(staging / batch_id / FIRST, staging / ("a" * 16) / SECOND)
    expire(story, 11)

    next_run(story)

    assert lost(story) == set()
    shutil.rmtree(staging / ("a" * 16))
    next_run(story)
    assert lost(story) == {(0, 10, 11), (1, 10, 11)}
    assert story.published_offsets()[0] == [*range(10), *range(11, 25)]


def test_a_person_gives_up_what_an_attempt_that_this_ledger_never_saw_has_not_finished(
    story: Story,
) -> None:
    staging = story.directory / "landing" / "_staging" / landed(story).batch_id
    (staging / FIRST / "data" / "_temporary").mkdir()
    (staging / FIRST).rename(staging / SECOND)
    expire(story)
    next_run(story)
    assert lost(story) == set()

    repair_feed(story.services(), story.named(), TWO)

    assert any(SECOND in str(each) for each in quarantined(story))
    next_run(story)
    assert lost(story) == {(0, 10, 20), (1, 10, 20)}
