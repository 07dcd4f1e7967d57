"""What a snapshot says of real topics, and what the view says of single records."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from tallystick.domain.logs.snapshot import PartitionBounds, RecordEvidence
from tallystick.domain.rows.record_hash import record_hash
from tallystick.errors import TopicUnknown
from tallystick.settings.connections import connection_in
from tallystick.settings.feed_group import FeedGroup
from tallystick.settings.feeds import feeds_of_group, file_as_written
from tallystick.sources.broker_view import KafkaBrokerView
from tallystick.wiring.adapters import open_broker
from tests.support.kafka_producers import AWKWARD, Message, TransactionalProducer, messages, produce
from tests.support.kafka_reading import seen_records
from tests.support.kafka_records import Record
from tests.support.kafka_topics import (
    ANY_TIME,
    LARGE,
    create_topic,
    purge,
)

NOW = datetime(2026, 11, 1, 12, 30, tzinfo=UTC)
CODECS = ("gzip", "snappy", "lz4", "zstd")


@pytest.fixture
def view(kafka: str) -> Iterator[KafkaBrokerView]:
    with KafkaBrokerView({"bootstrap.servers": kafka}, now=lambda: NOW) as view:
        yield view


def hash_of(seen: Record) -> bytes:
    return record_hash(
        partition=seen.partition,
        offset=seen.offset,
        timestamp_ms=seen.timestamp_ms,
        key=seen.key,
        value=seen.value,
        headers=seen.headers,
    )


def record_at(
    view: KafkaBrokerView, topic: str, offset: int, *, partition: int = 0
) -> RecordEvidence | None:
    return view.records_at(topic, {partition: offset}).get(partition)


def test_a_new_topic_has_empty_partitions(kafka: str, view: KafkaBrokerView) -> None:
    topic = create_topic(kafka, partitions=3, config={"retention.ms": "60000"})
    found = view.snapshot(topic)
    assert found.topic == topic
    assert found.taken_at == NOW
    assert found.cluster_id == AdminClient({"bootstrap.servers": kafka}).list_topics().cluster_id
    assert len(found.topic_id) == 22
    assert found.partitions == {each: PartitionBounds(0, 0, 0, 0) for each in range(3)}
    assert found.retention_ms == 60_000
    assert not found.is_compacted


@pytest.mark.parametrize(
    ("config", "is_compacted", "retention_ms"),
    [
        ({"cleanup.policy": "delete", "retention.ms": "-1"}, False, None),
        ({"cleanup.policy": "compact", "retention.ms": "1000"}, True, None),
        ({"cleanup.policy": "compact,delete", "retention.ms": "90000"}, True, 90_000),
    ],
)
def test_the_snapshot_tells_how_records_may_go(
    kafka: str,
    view: KafkaBrokerView,
    config: dict[str, str],
    is_compacted: bool,
    retention_ms: int | None,
) -> None:
    found = view.snapshot(create_topic(kafka, config=config))
    assert (found.is_compacted, found.retention_ms) == (is_compacted, retention_ms)


def test_a_batch_head_tells_a_purge_an_age_and_a_producer(
    kafka: str, view: KafkaBrokerView
) -> None:
    topic = create_topic(kafka, partitions=3, config={"retention.ms": "-1"})
    sent = [Message(b"v", timestamp_ms=at) for at in (5_000, 9_000, 7_000)]
    produce(kafka, topic, sent)
    purge(kafka, topic, {0: 2})
    TransactionalProducer(kafka, topic).open(messages(4), partition=1)
    assert view.snapshot(topic).partitions[0].log_start_offset == 2
    heads = view.batch_heads(topic, {0: 2, 1: 0, 2: 0})
    assert heads.keys() == {0, 1}
    purged, opened = heads[0], heads[1]
    assert (purged.base_offset, purged.until_offset, purged.max_timestamp_ms) == (0, 3, 9_000)
    assert purged.producer_id is None
    assert (opened.base_offset, opened.until_offset) == (0, 4)
    assert opened.producer_id is not None
    assert view.batch_heads(topic, {0: 1, 1: 4}) == {}


def test_the_brokers_say_how_long_a_transaction_may_take(view: KafkaBrokerView) -> None:
    assert view.longest_transaction() == timedelta(minutes=15)


def test_many_partitions_are_asked_at_once(kafka: str, view: KafkaBrokerView) -> None:
    topic = create_topic(kafka, partitions=100)
    produce(kafka, topic, messages(2), partition=99)
    found = view.snapshot(topic).partitions
    assert list(found) == list(range(100))
    assert found[99].high_watermark == 2


def test_a_missing_topic_is_unknown_and_stays_missing(kafka: str, view: KafkaBrokerView) -> None:
    topic = "never-made"
    with pytest.raises(TopicUnknown, match=r"'never-made' does not exist .* Create the topic"):
        view.snapshot(topic)
    with pytest.raises(TopicUnknown):
        record_at(view, topic, 0)
    with pytest.raises(TopicUnknown):
        view.offsets_at(topic, NOW, [0])
    assert topic not in AdminClient({"bootstrap.servers": kafka}).list_topics().topics


def test_one_record_far_in_the_future_is_the_answer_for_every_later_instant(
    kafka: str, view: KafkaBrokerView
) -> None:
    topic = create_topic(kafka, config=ANY_TIME)
    future = int((NOW + timedelta(days=9000)).timestamp() * 1000)
    produce(kafka, topic, [Message(b"late", timestamp_ms=future), *messages(5)])
    assert view.offsets_at(topic, NOW + timedelta(days=8000), [0]) == {0: 0}


def test_evidence_of_a_record_is_what_a_consumer_would_hash(
    kafka: str, view: KafkaBrokerView
) -> None:
    topic = create_topic(kafka, partitions=2, config=ANY_TIME | LARGE)
    produce(kafka, topic, AWKWARD, partition=1)
    seen = seen_records(kafka, topic, partition=1)
    assert [each.value for each in seen] == [each.value for each in AWKWARD]
    for each in seen:
        found = record_at(view, topic, each.offset, partition=1)
        assert found is not None
        assert (found.offset, found.leader_epoch) == (each.offset, 0)
        assert found.content_hash == hash_of(each)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("compressed_by", ["producer", "broker"])
def test_evidence_is_the_same_under_every_codec(
    kafka: str, view: KafkaBrokerView, codec: str, compressed_by: str
) -> None:
    """The broker compresses by Java's libraries, the producer by C's: snappy has two framings."""
    by_broker = compressed_by == "broker"
    topic = create_topic(kafka, config={"compression.type": codec if by_broker else "producer"})
    sent = [Message(f"{n}-".encode() * 200, b"k", [("h", b"x" * 50)]) for n in range(300)]
    produce(kafka, topic, sent, config={} if by_broker else {"compression.type": codec})
    seen = seen_records(kafka, topic)
    assert len(seen) == 300
    for each in (seen[0], seen[150], seen[299]):
        found = record_at(view, topic, each.offset)
        assert found is not None
        assert found.content_hash == hash_of(each)


def test_under_log_append_time_a_record_has_the_time_of_its_batch(
    kafka: str, view: KafkaBrokerView
) -> None:
    topic = create_topic(kafka, config={"message.timestamp.type": "LogAppendTime"})
    produce(kafka, topic, [Message(b"v", timestamp_ms=1000 + n) for n in range(5)])
    seen = seen_records(kafka, topic)
    assert all(each.timestamp_ms > 1_000_000_000_000 for each in seen)
    for each in seen:
        found = record_at(view, topic, each.offset)
        assert found is not None
        assert found.content_hash == hash_of(each)


def test_records_of_many_partitions_come_together(kafka: str, view: KafkaBrokerView) -> None:
    """Small batches, batches larger than a request asks for at first, and offsets without any."""
    topic = create_topic(kafka, partitions=8, config=LARGE)
    for partition in range(0, 8, 2):
        size = 10 if partition % 4 else 900_000
        sent = [Message(bytes([n]) * size) for n in range(3)]
        produce(kafka, topic, sent, partition=partition)
    found = view.records_at(topic, dict.fromkeys(range(8), 2))
    assert sorted(found) == list(range(0, 8, 2))
    for partition, evidence in found.items():
        last = seen_records(kafka, topic, partition=partition)[2]
        assert evidence == RecordEvidence(2, 0, hash_of(last))
    assert view.records_at(topic, {}) == {}


def test_a_closed_view_opens_again(kafka: str, view: KafkaBrokerView) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, messages(1))
    for _ in range(2):
        assert view.snapshot(topic).partitions[0].high_watermark == 1
        assert record_at(view, topic, 0) is not None
        view.close()


def test_the_feeds_of_a_pattern_are_the_clusters_topics_that_match(
    kafka: str, tmp_path: Path
) -> None:
    (tmp_path / "events.yaml").write_text(
        "feed: events\nsource: {topics: 'Group\\.[0-9a-f]+'}\ntarget: {root: /data}\n"
        'schedule: {cron: "0 * * * *", start_date: 2026-11-01}\n'
    )
    group = file_as_written(tmp_path, "events")
    assert isinstance(group, FeedGroup)
    topic = create_topic(kafka, f"Group.{uuid4().hex[:12]}")
    connections = partial(connection_in, {"KAFKA_BOOTSTRAP_SERVERS": kafka})
    with open_broker(group, connections) as broker:
        found = feeds_of_group(tmp_path, group, broker.topics())
    assert found == [f"events--_group_-{topic.removeprefix('Group.')}"]
    assert group.feed(found[0]).source.topic == topic
