"""What librdkafka reads from a real Kafka: a witness that shares no code with the package."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

IDLE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One record as a consumer got it."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def seen_records(
    servers: str, topic: str, *, partition: int = 0, isolation: str = "read_committed"
) -> list[Seen]:
    """All records from the log start to the end that this isolation level shows."""
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
    found: list[Seen] = []
    try:
        start, _ = consumer.get_watermark_offsets(TopicPartition(topic, partition))
        consumer.assign([TopicPartition(topic, partition, start)])
        while True:
            message = consumer.poll(IDLE_SECONDS)
            assert message is not None, f"{topic}-{partition}: neither a record nor the end"
            if message.error() is None:
                headers = tuple(message.headers() or ())
                found.append(
                    Seen(
                        message.offset(),
                        message.timestamp()[1],
                        message.key(),
                        message.value(),
                        headers,
                    )
                )
            elif message.error().code() == KafkaError._PARTITION_EOF:
                return found
            else:
                raise KafkaException(message.error())
    finally:
        consumer.close()
