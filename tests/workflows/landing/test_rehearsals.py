"""When a landing is rehearsed: before a claim, once a day and setting, and after trouble."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.batches.rehearsal import Rehearsed
from tallystick.domain.identities import Owner
from tallystick.errors import ConfigurationError, RehearsalFailed, StorageRefused
from tallystick.ports.spark_runner import RehearsalOrder
from tallystick.workflows.landing.run import RunReport, land_feed
from tallystick.workflows.services import Services
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker, ScriptedSpark
from tests.support.story import Story


@dataclass
class Clock:
    at: datetime = NOW

    def now(self) -> datetime:
        return self.at

    def pause(self, seconds: float) -> None:
        return None


class CountingSpark(ScriptedSpark):
    rehearsals = 0

    def rehearse(self, order: RehearsalOrder) -> None:
        self.rehearsals += 1
        super().rehearse(order)


@dataclass
class Scene:
    story: Story
    services: Services
    spark: CountingSpark
    clock: Clock

    def land(self, setting: str = "one") -> RunReport:
        self.story.broker.logs[0].append(Kind.RECORD, 10)
        return land_feed(replace(self.services, setting=setting), None, Owner("run"))


@pytest.fixture
def scene(ledger_databases: Callable[[], str], tmp_path: Path) -> Scene:
    story = Story(ledger_databases(), tmp_path, ScriptedBroker("orders"))
    services, clock = story.services(), Clock()
    spark = CountingSpark(story.broker, services.store)
    return Scene(story, replace(services, spark=spark, clock=clock), spark, clock)


def test_once_for_a_day_and_a_setting(scene: Scene) -> None:
    scene.land()
    scene.clock.at += timedelta(hours=23)
    scene.land()
    assert scene.spark.rehearsals == 1
    scene.land("another")
    assert scene.spark.rehearsals == 2
    scene.clock.at += timedelta(hours=25)
    scene.land("another")
    assert scene.spark.rehearsals == 3
    kept = scene.story.directory / "landing" / "_rehearsals" / "orders"
    assert [each.name.partition("-")[0] for each in kept.iterdir()] == ["another"]


def test_nothing_to_land_needs_none(scene: Scene) -> None:
    land_feed(replace(scene.services, setting="one"), None, Owner("run"))
    assert scene.spark.rehearsals == 0


def test_a_rehearsal_that_fails_claims_nothing_and_leaves_nothing(scene: Scene) -> None:
    scene.spark.rehearsed = None
    for _ in range(2):
        with pytest.raises(RehearsalFailed):
            scene.land()
    assert scene.spark.rehearsals == 2
    assert scene.services.ledger.batches(scene.services.feed_name) == []
    assert scene.story.staged() == []


def test_the_brokers_that_spark_does_not_reach_are_named(scene: Scene) -> None:
    unread = "Timeout of 10000ms expired before the position for partition orders-0 could be known"
    scene.spark.rehearsed = Rehearsed("4.0.4", "2.13.16", "17.0.1", "root", unread)
    with pytest.raises(ConfigurationError, match=r"'scripted:9092 of node 1'.*position"):
        scene.land()


def test_trouble_of_a_landing_makes_it_due_again(scene: Scene) -> None:
    def refused(plan: LandingPlan) -> None:
        raise StorageRefused(plan.output, "Permission denied")

    scene.land()
    scene.spark.before_write = refused
    assert scene.land().errors
    scene.spark.before_write = lambda plan: None
    assert not scene.land().errors
    assert scene.spark.rehearsals == 2
