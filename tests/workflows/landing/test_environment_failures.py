"""What is wrong where Spark runs, or with the topic, counts against no batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.errors import (
    ApplicationFailed,
    IngestionError,
    SourceChanged,
    TopicGone,
    TopicUnknown,
)
from tallystick.ports.file_store import FileStore
from tallystick.ports.spark_runner import LandingOrder
from tallystick.workflows.landing import watching
from tallystick.workflows.landing.run import RunReport, land_feed
from tallystick.workflows.services import Services
from tests.support.scripted_broker import Kind, ScriptedBroker, ScriptedSpark
from tests.support.story import Story

OWNER = Owner("one")
NO_CLASS = "ClassNotFoundException: org.apache.spark.internal.LogKey"
BLIND = {(partition, offset): "no route to host" for partition in (0, 1) for offset in range(20)}


@pytest.fixture
def story(ledger_databases: Callable[[], str], tmp_path: Path) -> Story:
    broker = ScriptedBroker("orders")
    for log in broker.logs.values():
        log.append(Kind.RECORD, 20)
    return Story(ledger_databases(), tmp_path, broker)


class Spark(ScriptedSpark):
    """Counts its searches."""

    searches = 0

    def search(self, order: LandingOrder, *, noted: Callable[[str], None]) -> None:
        self.searches += 1
        super().search(order, noted=noted)


class Misplaced(Spark):
    """Fails before it reads."""

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        raise ApplicationFailed(order.batch_id, "local", NO_CLASS)


def working_with(story: Story, kind: type[Spark]) -> tuple[Services, Spark]:
    services = story.services()
    spark = kind(story.broker, services.store)
    return replace(services, spark=spark), spark


def error_of(report: RunReport) -> IngestionError:
    return report.errors[0]


def test_what_fails_before_it_reads_is_neither_halved_nor_searched(story: Story) -> None:
    services, spark = working_with(story, Misplaced)

    reports = [land_feed(services, None, OWNER) for _ in range(4)]

    assert all(NO_CLASS in str(error_of(each)) for each in reports)
    assert len({each.batch_id for report in reports for each in report.batches}) == 1
    assert spark.searches == 0
    assert not land_feed(story.services(), None, OWNER).errors
    assert story.published_offsets() == {0: [*range(20)], 1: [*range(20)]}


def test_a_spark_that_reads_nothing_anywhere_is_to_blame_and_no_batch_is(story: Story) -> None:
    services, spark = working_with(story, Spark)
    spark.unreadable = BLIND

    reports = [land_feed(services, None, OWNER) for _ in range(5)]

    assert len({each.batch_id for report in reports for each in report.batches}) == 1
    assert spark.searches == 4
    assert "reads none of a few" not in str(error_of(reports[0]))
    for each in reports[1:]:
        assert "It reads none of a few single offsets" in str(error_of(each))
    [batch] = {each.batch_id for each in reports[0].batches}
    assert services.ledger.batch(batch).applications == 1


def test_a_partition_that_cannot_be_read_beside_another_one_is_still_parted(story: Story) -> None:
    services, spark = working_with(story, Spark)
    spark.unreadable = {place: why for place, why in BLIND.items() if place[0] == 0}

    for _ in range(3):
        land_feed(services, None, OWNER)

    assert story.published_offsets() == {1: [*range(20)]}


class Held(Spark):
    """Reads until it is interrupted, or for a while; the topic is another one meanwhile."""

    def __init__(self, broker: ScriptedBroker, store: FileStore) -> None:
        super().__init__(broker, store)
        self.meanwhile: Callable[[], object] = lambda: None
        self.is_ended = threading.Event()

    def interrupt(self, attempt_id: str) -> bool:
        self.is_ended.set()
        return super().interrupt(attempt_id)

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        started("local")
        self.meanwhile()
        if self.is_ended.wait(5):
            raise ApplicationFailed(order.batch_id, "local", "killed by signal 9")
        super().run(order, started=started)


@pytest.fixture
def held(story: Story, monkeypatch: pytest.MonkeyPatch) -> tuple[Services, Held]:
    monkeypatch.setattr(watching, "_EVERY_SECONDS", 0.1)
    services, spark = working_with(story, Held)
    assert isinstance(spark, Held)
    return services, spark


def test_a_topic_that_is_gone_ends_what_reads_it(story: Story, held: tuple[Services, Held]) -> None:
    services, spark = held
    spark.meanwhile = lambda: setattr(story.broker, "topic", "another")
    begun = time.monotonic()

    report = land_feed(services, None, OWNER)

    assert isinstance(error_of(report), TopicGone)
    assert time.monotonic() - begun < 5
    [batch] = report.batches
    assert services.ledger.batch(batch.batch_id).applications == 0


def test_a_topic_that_is_made_anew_ends_what_reads_it(
    story: Story, held: tuple[Services, Held]
) -> None:
    services, spark = held
    spark.meanwhile = story.broker.recreate

    error = error_of(land_feed(services, None, OWNER))

    assert isinstance(error, SourceChanged)
    assert "re-created while Spark read it" in str(error)


def test_one_answer_that_denies_the_topic_ends_nothing(
    story: Story, held: tuple[Services, Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    services, spark = held
    answers: list[str] = []

    def identity(topic: str) -> str:
        answers.append(topic)
        if len(answers) % 2:
            raise TopicUnknown(topic, "scripted")
        return story.broker.topic_id

    monkeypatch.setattr(story.broker, "identity", identity)

    assert not land_feed(services, None, OWNER).errors
    assert len(answers) > 2
    assert spark.interrupted == []


def test_a_topic_that_was_denied_and_is_there_blames_no_batch(
    story: Story, held: tuple[Services, Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    services, spark = held

    def identity(topic: str) -> str:
        raise TopicUnknown(topic, "scripted")

    monkeypatch.setattr(story.broker, "identity", identity)

    report = land_feed(services, None, OWNER)

    assert isinstance(error_of(report), ApplicationFailed)
    assert spark.interrupted
    [batch] = report.batches
    assert services.ledger.batch(batch.batch_id).applications == 0
