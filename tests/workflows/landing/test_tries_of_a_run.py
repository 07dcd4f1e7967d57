"""A run's tries are one owner: what one of them found is told, whichever of them died."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.window import Window
from tallystick.workflows.landing.checking import check
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.landing.run import carry_out, land_feed
from tallystick.workflows.planning.plan import plan_feed
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker
from tests.support.story import FEED, Story

EARLIER, RUN, OTHER = Owner("an earlier run"), Owner("this run"), Owner("another run")
LONG = timedelta(seconds=60)
HOUR = Window(NOW.replace(minute=0), NOW.replace(minute=0) + timedelta(hours=1))


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    """An earlier run has landed the first 10 offsets of both partitions."""
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    story = Story(ledger_databases(), tmp_path, broker)
    land_feed(story.services(lease=LONG), None, EARLIER)
    return story


def lose(story: Story, *, left: int) -> None:
    """Five offsets of each partition expire before they are landed; so many come after them."""
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5 + left)
        log.log_start_offset = 15


def told(story: Story, owner: Owner, window: Window | None = None) -> list[tuple[str, object]]:
    """What the check says at the end of the owner's newest try."""
    planned = plan_feed(story.services(lease=LONG), window, owner)
    found = check(story.services(), planned.planned_at, owner)
    return [(each.code.value, each.partition) for each in found]


@pytest.mark.parametrize("left", [0, 5])
@pytest.mark.parametrize("window", [None, HOUR])
def test_a_loss_that_a_killed_try_of_plan_recorded_is_told_by_its_run(
    story: Story, window: Window | None, left: int
) -> None:
    lose(story, left=left)
    plan_feed(story.services(lease=LONG), window, RUN)  # killed after its commit
    assert told(story, RUN, window) == [("A1", 0), ("A1", 1)]
    assert told(story, RUN, window) == [("A1", 0), ("A1", 1)], "a third try tells it as well"


def test_a_later_run_does_not_tell_it_again(story: Story) -> None:
    lose(story, left=5)
    plan_feed(story.services(lease=LONG), None, RUN)
    assert told(story, OTHER) == []


def test_a_loss_that_was_found_in_another_runs_plan_is_told_by_the_run_that_found_it(
    story: Story,
) -> None:
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    [left_behind] = plan_feed(story.services(), HOUR, OTHER).batches
    land_batch(story.services(), left_behind.batch_id, AttemptId("1" * 16), OTHER)
    for landed in (story.directory / "landing" / "_staging").rglob("*.parquet"):
        landed.unlink()  # what is whole would be committed before anything is lost
    story.broker.logs[0].log_start_offset = 12
    assert plan_feed(story.services(), HOUR, RUN).is_resumed  # killed after its commit
    carry_out(story.services(), left_behind.batch_id, OTHER)
    assert not story.services().ledger.accounts(FEED).unfinished
    assert told(story, RUN, HOUR) == [("A1", 0)]


def test_what_has_passed_since_an_earlier_life_of_the_run_is_not_told_again(story: Story) -> None:
    story.broker.leaderless = {0}
    assert told(story, RUN) == [("U1", 0)]
    assert told(story, RUN) == [("U1", 0)]
    story.broker.leaderless = set()
    assert told(story, RUN) == []
