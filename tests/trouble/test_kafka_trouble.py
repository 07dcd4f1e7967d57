"""Kafka goes away at every step: what the run says, and that the next one makes all good."""

from __future__ import annotations

import random
import time

import pytest

from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import ApplicationFailed, BrokerUnavailable, TopicGone, TopicUnknown
from tests.support.kafka_producers import Message, produce
from tests.support.kafka_quotas import reading_limited
from tests.support.kafka_topics import delete_topic
from tests.trouble.scene import AWAY_SECONDS, Before, NewScene, Runner, Scene

# Kafka's client in Spark has a minute of patience and more.
IMPATIENT = {
    "kafka.default.api.timeout.ms": "3000",
    "kafka.request.timeout.ms": "2000",
    "kafkaConsumer.pollTimeoutMs": "3000",
}


@pytest.fixture
def scene(scene: Scene) -> Scene:
    """Has little patience: Kafka is taken away."""
    scene.patience_seconds = AWAY_SECONDS
    return scene


def test_kafka_is_down_at_plan(scene: Scene) -> None:
    with scene.place.kafka_gate.closed():
        error = scene.fails()
        report = scene.reconciled()
    assert isinstance(error, BrokerUnavailable)
    assert error.retry
    scene.tells(error, "at plan", scene.place.bootstrap_servers, "Check the brokers")
    assert [each.code for each in report.findings] == [FindingCode.COULD_NOT_TELL]
    assert report.verdict is Verdict.UNKNOWN
    scene.recovers()


def test_kafka_goes_down_before_spark_is_started(scene: Scene) -> None:
    gate = scene.place.kafka_gate
    error = scene.fails(ledger=Before("begin_attempt", gate.shut))
    gate.open()
    assert isinstance(error, BrokerUnavailable)
    assert error.retry
    scene.tells(error, "at land", "batch ", f"{scene.topic}-0 [0, 10)", "Check the brokers")
    scene.recovers()


def test_kafka_is_killed_under_spark(scene: Scene) -> None:
    kafka = scene.place.kafka
    runner = Runner(scene.spark, before=lambda plan: kafka.kill())
    error = scene.fails(runner, kafka_options=lambda usual: {**usual, **IMPATIENT})
    kafka.start()
    assert isinstance(error, ApplicationFailed)
    assert error.retry
    scene.tells(error, "at land", "batch ", f"{scene.topic}-0 [0, 10)", "Timeout")
    scene.recovers()


def test_kafka_goes_down_before_the_proof(scene: Scene) -> None:
    gate = scene.place.kafka_gate
    error = scene.fails(Runner(scene.spark, after=lambda plan: gate.shut()))
    gate.open()
    assert isinstance(error, BrokerUnavailable)
    assert error.retry
    scene.tells(error, "at verify", "batch ", f"{scene.topic}-0 [0, 10)", "Check the brokers")
    assert scene.rows() == [], "nothing is shown that was not proven"
    scene.recovers()


def test_kafka_goes_down_before_the_check_and_what_is_landed_is_told(scene: Scene) -> None:
    gate = scene.place.kafka_gate
    report = scene.land(store=Before("rename_exclusive", gate.shut))
    gate.open()
    assert [each.directory is not None for each in report.batches] == [True]
    [error] = report.errors
    assert isinstance(error, BrokerUnavailable)
    scene.tells(error, "at check")
    scene.recovers()


def test_a_quota_of_bytes_makes_a_landing_slow_and_nothing_else(new_scene: NewScene) -> None:
    scene = new_scene()
    large = [Message(random.randbytes(10_000)) for _ in range(200)]
    produce(scene.place.bootstrap_servers, scene.topic, large)
    scene.count += len(large)
    began = time.monotonic()

    with reading_limited(scene.place.bootstrap_servers, bytes_per_second=200_000):
        report = scene.landed()
        rows = scene.rows()

    assert time.monotonic() - began > 5, "the quota held nobody up"
    assert [each.commit is not None for each in report.batches] == [True]
    assert [each.offset for each in rows] == [*range(200)]
    scene.recovers()


def test_the_topic_is_missing(new_scene: NewScene) -> None:
    scene = new_scene()
    scene.topic = "never-made"
    error = scene.fails()
    assert isinstance(error, TopicUnknown)
    assert not error.retry
    scene.tells(error, "at plan", "'never-made'", "source.topic")


def test_the_topic_is_deleted_while_spark_reads(scene: Scene) -> None:
    servers = scene.place.bootstrap_servers
    runner = Runner(scene.spark, after=lambda plan: delete_topic(servers, scene.topic))
    error = scene.fails(runner)
    assert isinstance(error, TopicUnknown)
    assert not error.retry
    scene.tells(error, "at verify", "batch ", f"{scene.topic}-0 [0, 10)", repr(scene.topic))
    assert scene.rows() == []


def test_a_topic_that_is_deleted_for_good_is_named_to_the_offset(scene: Scene) -> None:
    scene.recovers()
    scene.produce(5)
    scene.reconciled()
    delete_topic(scene.place.bootstrap_servers, scene.topic)
    error = scene.fails()
    assert isinstance(error, TopicGone)
    scene.tells(error, "at plan", repr(scene.topic), "Don't create it by hand")
    [lost] = [
        each for each in scene.reconciled().findings if each.code is FindingCode.TOPIC_RECREATED
    ]
    assert (lost.partition, lost.from_offset, lost.until_offset) == (0, 10, 15)
    assert lost.verdict is Verdict.UNKNOWN
