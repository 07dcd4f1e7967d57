"""All that librdkafka sees of a partition: a witness that shares no code with the package."""

from __future__ import annotations

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.support.kafka_records import Record, records_in

_ANY_END = 2**62


def seen_records(servers: str, topic: str, *, partition: int = 0) -> list[Record]:
    """All committed records from the log start to the end."""
    place = TopicPartition(topic, partition)
    client = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    start = client.list_offsets({place: OffsetSpec.earliest()})[place].result(30).offset
    return records_in(servers, topic, {partition: (start, _ANY_END)}, "read_committed")
