"""A consumer group that shows what is landed: on real Kafka, and never in anybody's way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from secrets import token_hex

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient

from tallystick.errors import BrokerUnavailable, SourceRefused
from tallystick.sources.frontier_group import KafkaFrontierGroup
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import create_topic, delete_topic, wait_until


@pytest.fixture
def topic(kafka: str) -> Iterator[str]:
    name = f"frontiers-{token_hex(4)}"
    create_topic(kafka, name, partitions=2)
    produce(kafka, name, messages(5), partition=0)
    yield name
    delete_topic(kafka, name)


def offsets_of(kafka: str, group: str) -> dict[tuple[str, int], int]:
    """What any tool that watches lag sees."""
    admin = AdminClient({"bootstrap.servers": kafka})  # kept until it has answered
    asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    found = asked[group].result(20).topic_partitions
    return {(each.topic, each.partition): each.offset for each in found}


@contextlib.contextmanager
def consumer_of(kafka: str, group: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {"bootstrap.servers": kafka, "group.id": group, "enable.auto.commit": False}
    )
    try:
        yield consumer
    finally:
        consumer.close()


def test_the_landed_frontiers_stand_in_the_group(kafka: str, topic: str) -> None:
    group = KafkaFrontierGroup({"bootstrap.servers": kafka}, f"{topic}-lag")
    group.show("orders", topic, {0: 3, 1: 0})
    assert offsets_of(kafka, f"{topic}-lag") == {(topic, 0): 3, (topic, 1): 0}
    group.show("orders", topic, {0: 5, 1: 0})
    assert offsets_of(kafka, f"{topic}-lag") == {(topic, 0): 5, (topic, 1): 0}


def test_a_group_with_members_is_left_alone(kafka: str, topic: str) -> None:
    name = f"{topic}-used"
    with consumer_of(kafka, name) as consumer:
        consumer.subscribe([topic])

        def is_joined() -> bool:
            consumer.poll(0.2)
            return bool(consumer.assignment())

        wait_until(is_joined, "the consumer has joined")
        with pytest.raises(SourceRefused, match="has members"):
            KafkaFrontierGroup({"bootstrap.servers": kafka}, name).show("orders", topic, {0: 3})
    assert offsets_of(kafka, name) == {}


def test_offsets_of_somebody_else_are_left_alone(kafka: str, topic: str) -> None:
    name = f"{topic}-others"
    with consumer_of(kafka, name) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    group = KafkaFrontierGroup({"bootstrap.servers": kafka}, name)
    with pytest.raises(SourceRefused, match=f"somebody else has committed an offset of {topic}-0"):
        group.show("orders", topic, {0: 3})
    assert offsets_of(kafka, name) == {(topic, 0): 1}


def test_two_feeds_do_not_share_a_group(kafka: str, topic: str) -> None:
    group = KafkaFrontierGroup({"bootstrap.servers": kafka}, f"{topic}-shared")
    group.show("orders", topic, {0: 3})
    with pytest.raises(SourceRefused, match="somebody else"):
        group.show("payments", topic, {0: 4})
    assert offsets_of(kafka, f"{topic}-shared") == {(topic, 0): 3}


def test_a_broker_that_is_away_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallystick.sources.frontier_group._SECONDS", 1.0)
    group = KafkaFrontierGroup({"bootstrap.servers": "127.0.0.1:1"}, "away")
    with pytest.raises(BrokerUnavailable):
        group.show("orders", "orders", {0: 3})
