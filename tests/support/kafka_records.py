"""Offset ranges of a real Kafka as librdkafka reads them, in a form that landed rows compare to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, TopicPartition

IDLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Record:
    """One record with all that a landed row holds of it."""

    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    """0: set by the producer; 1: by the broker."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def records_in(
    servers: str,
    topic: str,
    ranges: Mapping[int, tuple[int, int]],
    isolation: str = "read_committed",
) -> list[Record]:
    """The visible records with offsets in [from, until) of each partition, sorted by place."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"test-{uuid4().hex}",
            "isolation.level": isolation,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 0,
        }
    )
    found: list[Record] = []
    unread = set(ranges)
    try:
        consumer.assign([TopicPartition(topic, each, begin) for each, (begin, _) in ranges.items()])
        while unread:
            message = consumer.poll(IDLE_SECONDS)
            assert message is not None, f"{topic}: no answer for partitions {sorted(unread)}"
            until = ranges[message.partition()][1]
            if message.error() is None and message.offset() < until:
                found.append(_record(message))
            elif message.error() is not None:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            if message.offset() >= until - 1 or message.error() is not None:
                unread.discard(message.partition())
    finally:
        consumer.close()
    return sorted(found, key=lambda each: (each.partition, each.offset))


def _record(message: Any) -> Record:
    kind, timestamp_ms = message.timestamp()
    return Record(
        message.partition(),
        message.offset(),
        timestamp_ms,
        kind - 1,  # librdkafka counts from 1
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )
