"""librdkafka's own broker in memory: a real client against real bytes, without a service."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer


@dataclass(frozen=True, slots=True)
class MockKafka:
    """One broker that lives as long as its producer."""

    servers: str
    producer: Any

    def produce(self, topic: str, *values: bytes | None, partition: int = 0, **more: Any) -> None:
        for each in values:
            self.producer.produce(topic, value=each, partition=partition, **more)
        assert self.producer.flush(10) == 0


@contextmanager
def mock_kafka() -> Iterator[MockKafka]:
    producer = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
    [broker] = producer.list_topics(timeout=10).brokers.values()
    yield MockKafka(f"{broker.host}:{broker.port}", producer)
