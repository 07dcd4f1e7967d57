"""Topics of a real Kafka for tests: made, grown, purged, deleted, made again."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from uuid import uuid4

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

BOUND_SECONDS = 30.0
_POLL_SECONDS = 0.05

# Every append that comes a moment later starts a new segment, and every old segment is cleaned.
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.001",
    "segment.ms": "1",
    "delete.retention.ms": "0",
}

# Kafka refuses times more than an hour ahead unless told otherwise.
ANY_TIME = {"message.timestamp.after.max.ms": str(2**63 - 1)}
# And keep what is long past.
ANY_TIME_FOR_EVER = {**ANY_TIME, "retention.ms": "-1"}
# Room for the records of 1 MB.
LARGE = {"max.message.bytes": "2000000"}


def wait_until(is_so: Callable[[], bool], what: str, *, seconds: float = BOUND_SECONDS) -> None:
    """Return as soon as it is so; AssertionError when it isn't in time."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(_POLL_SECONDS)


def admin(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers})


def create_topic(
    servers: str,
    name: str | None = None,
    *,
    partitions: int = 1,
    config: Mapping[str, str] | None = None,
    replicas: list[list[int]] | None = None,
) -> str:
    """Its name; returns when every partition has a leader that answers."""
    name = name or f"test-{uuid4().hex[:12]}"
    client = admin(servers)
    layout: dict[str, object] = (
        {"replica_assignment": replicas} if replicas else {"replication_factor": 1}
    )
    topic = NewTopic(name, num_partitions=partitions, config=dict(config or {}), **layout)

    def is_created() -> bool:
        try:
            client.create_topics([topic])[name].result(BOUND_SECONDS)
        except KafkaException as failure:
            # A topic of this name is still being deleted.
            if failure.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise
            return False
        return True

    wait_until(is_created, f"topic {name} created")
    wait_until_led(servers, name, partitions)
    return name


def wait_until_led(servers: str, topic: str, partitions: int) -> None:
    """Return when every partition's leader answers."""
    wanted = {TopicPartition(topic, each): OffsetSpec.latest() for each in range(partitions)}

    def has_leaders() -> bool:
        # A client of its own each time: what one broker said a moment ago is kept for minutes.
        client = admin(servers)
        answers = client.list_offsets(wanted, request_timeout=5).values()
        return not any(each.exception() for each in answers)

    wait_until(has_leaders, f"{topic} has leaders")


def wait_until_unled(servers: str, topic: str, partition: int) -> None:
    """Return when brokers say that the partition has no leader."""

    def has_none() -> bool:
        told = admin(servers).list_topics(topic, timeout=BOUND_SECONDS).topics[topic]
        return bool(told.partitions[partition].leader < 0)

    wait_until(has_none, f"{topic}-{partition} has no leader")


def delete_topic(servers: str, topic: str) -> None:
    client = admin(servers)
    client.delete_topics([topic])[topic].result(BOUND_SECONDS)
    wait_until(lambda: topic not in client.list_topics(timeout=5).topics, f"{topic} deleted")


def recreate_topic(servers: str, topic: str, **layout: object) -> None:
    """Delete the topic and make another one of the same name."""
    delete_topic(servers, topic)
    create_topic(servers, topic, **layout)  # type: ignore[arg-type]


def add_partitions(servers: str, topic: str, total: int) -> None:
    client = admin(servers)  # held until the answer is there: without it none ever comes
    client.create_partitions([NewPartitions(topic, total)])[topic].result(BOUND_SECONDS)
    wait_until_led(servers, topic, total)


def purge(servers: str, topic: str, before: Mapping[int, int]) -> None:
    """Delete the records below the given offset of each partition, by DeleteRecords."""
    wanted = [TopicPartition(topic, each, offset) for each, offset in before.items()]
    client = admin(servers)
    for each in client.delete_records(wanted).values():
        each.result(BOUND_SECONDS)


def set_config(servers: str, topic: str, **config: str) -> None:
    """Change settings of the topic; underscores in names stand for dots, values are as Kafka
    prints them.
    """
    entries = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in config.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    client = admin(servers)
    client.incremental_alter_configs([resource])[resource].result(BOUND_SECONDS)
    asked = ConfigResource(ResourceType.TOPIC, topic)

    def is_known() -> bool:
        told = client.describe_configs([asked])[asked].result(BOUND_SECONDS)
        return all(told[each.name].value == each.value for each in entries)

    # The controller answers first, and a broker learns of it from its log.
    wait_until(is_known, f"{topic} is set to {config}")
