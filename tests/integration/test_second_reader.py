"""librdkafka at real brokers: exact offsets, whatever is in the log, and nothing left behind."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import pytest
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer

from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.rows.second_read import SliceRead
from tallystick.errors import SourceRefused
from tallystick.sources.broker_view import KafkaBrokerView
from tallystick.sources.second_reader import LibrdkafkaReader
from tests.support.kafka_guarded import GUEST, READER, GuardedKafka, guarded_kafka
from tests.support.kafka_producers import (
    AWKWARD,
    Message,
    TransactionalProducer,
    empty_transaction,
    messages,
    produce,
)
from tests.support.kafka_topics import (
    ANY_TIME,
    COMPACTED,
    LARGE,
    create_topic,
    delete_topic,
    purge,
    wait_until,
)

# A producer's: all that waits goes into one batch.
WIDE = {"message.max.bytes": 200_000_000, "batch.size": 100_000_000, "linger.ms": 500}
COMMITTED, UNCOMMITTED = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED


@pytest.fixture
def reader(kafka: str) -> Iterator[LibrdkafkaReader]:
    reader = LibrdkafkaReader({"bootstrap.servers": kafka})
    yield reader
    reader.close()


@pytest.fixture
def view(kafka: str) -> Iterator[KafkaBrokerView]:
    with KafkaBrokerView(
        {"bootstrap.servers": kafka}, now=lambda: datetime(2026, 11, 1, tzinfo=UTC)
    ) as view:
        yield view


@pytest.fixture
def careful(kafka: str, view: KafkaBrokerView) -> Iterator[LibrdkafkaReader]:
    """As a landing has it: it knows what a slice unpacks to."""
    reader = LibrdkafkaReader({"bootstrap.servers": kafka}, weigh=view.weights)
    yield reader
    reader.close()


def read(
    reader: LibrdkafkaReader,
    topic: str,
    *bounds: tuple[int, int],
    isolation: Isolation = COMMITTED,
    partition: int = 0,
) -> Sequence[SliceRead]:
    place = TopicPartition(topic, partition)
    return reader.read([OffsetRange(place, *each) for each in bounds], isolation)


def offsets(found: SliceRead) -> list[int]:
    return [each.offset for each in found.records]


def answered(found: SliceRead) -> tuple[int, int, str | None]:
    return found.from_offset, found.until_offset, found.reason


def test_awkward_records_have_the_hash_that_another_library_gives_them(
    kafka: str, reader: LibrdkafkaReader, view: KafkaBrokerView
) -> None:
    topic = create_topic(kafka, config=ANY_TIME | LARGE)
    produce(kafka, topic, AWKWARD, config={"message.max.bytes": 2_000_000})

    found = read(reader, topic, (0, 2), (2, len(AWKWARD)))

    assert [each.reason for each in found] == [None, None]
    records = [each for one in found for each in one.records]
    assert [each.offset for each in records] == list(range(len(AWKWARD)))
    for each in records:
        other = view.records_at(topic, {0: each.offset})[0]
        assert each.content_hash == other.content_hash, AWKWARD[each.offset]
    assert {each.head.timestamp_type for each in records} == {0}


def test_the_end_of_a_slice_is_proven_behind_markers_and_aborted_records(
    kafka: str, reader: LibrdkafkaReader
) -> None:
    topic = create_topic(kafka)
    producer = TransactionalProducer(kafka, topic)
    producer.commit(messages(3)).abort(messages(3)).commit(messages(3))
    empty_transaction(kafka, topic, is_committed=False)
    # 0-2 and a marker, 4-6 aborted and a marker, 8-10 and a marker, a marker alone.
    slices = ((0, 4), (3, 8), (4, 7), (7, 8), (10, 13), (11, 13), (12, 13))

    found = read(reader, topic, *slices)

    assert [offsets(each) for each in found] == [[0, 1, 2], [], [], [], [10], [], []]
    assert [answered(each) for each in found] == [(*each, None) for each in slices]
    [shown] = read(reader, topic, (3, 8), isolation=UNCOMMITTED)
    assert offsets(shown) == [4, 5, 6]


def test_an_open_transaction_is_not_answered_for(kafka: str, reader: LibrdkafkaReader) -> None:
    topic = create_topic(kafka)
    producer = TransactionalProducer(kafka, topic).commit(messages(2)).open(messages(3))
    [found] = read(reader, topic, (0, 6))
    assert (offsets(found), found.until_offset) == ([0, 1], 3)
    assert found.reason == "the broker shows nothing from 3 on"
    producer.end()


def test_what_is_gone_at_the_beginning_is_not_answered_for(
    kafka: str, reader: LibrdkafkaReader
) -> None:
    topic = create_topic(kafka, partitions=2)
    for partition in range(2):
        produce(kafka, topic, messages(20), partition=partition)
    purge(kafka, topic, {0: 12})

    gone, cut, there = read(reader, topic, (2, 9), (10, 15), (16, 20))

    assert (offsets(gone), gone.answered_count) == ([], 0)
    assert gone.reason == "expired: the log begins at 12"
    assert (offsets(cut), answered(cut)) == ([12, 13, 14], (12, 15, None))
    assert offsets(there) == [16, 17, 18, 19]
    [behind] = read(reader, topic, (25, 30))
    assert (behind.answered_count, behind.reason) == (0, "the log ends at 20")
    [other] = read(reader, topic, (0, 3), partition=1)
    assert offsets(other) == [0, 1, 2]


def test_cleaned_records_are_passed_over(kafka: str, reader: LibrdkafkaReader) -> None:
    topic = create_topic(kafka, config=COMPACTED)
    produce(kafka, topic, messages(30, keys=3))

    def is_cleaned() -> bool:
        produce(kafka, topic, messages(1, keys=3, of="late"))
        [found] = read(reader, topic, (0, 27))
        assert (found.until_offset, found.reason) == (27, None)
        return len(found.records) < 27

    wait_until(is_cleaned, "something is cleaned")


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_a_batch_that_unpacks_to_too_much_is_not_read_and_holds_up_no_other(
    kafka: str, careful: LibrdkafkaReader, codec: str
) -> None:
    topic = create_topic(kafka, config=LARGE)
    batches = WIDE | {"compression.type": codec}
    produce(kafka, topic, messages(3))
    produce(kafka, topic, [Message(b"a" * 500_000)] * 140, config=batches)
    produce(kafka, topic, messages(3))
    # Small ones that are fetched together, if nobody minds.
    for _ in range(10):
        produce(kafka, topic, [Message(b"a" * 500_000)] * 20, config=batches)

    found = read(careful, topic, (0, 2), (1, 5), (50, 60), (143, 145), (150, 155), (330, 346))

    reason = "a batch there unpacks to more than 64 MB: not read"
    assert [each.reason for each in found] == [None, reason, reason, None, None, None]
    assert [each.answered_count for each in found] == [2, 0, 0, 2, 5, 16]
    assert [offsets(each) for each in (found[0], *found[3:])] == [
        [0, 1],
        [143, 144],
        list(range(150, 155)),
        list(range(330, 346)),
    ]


def test_what_has_expired_is_weighed_from_the_log_start_on(
    kafka: str, careful: LibrdkafkaReader
) -> None:
    topic = create_topic(kafka, config=LARGE)
    produce(kafka, topic, messages(10))
    batches = WIDE | {"compression.type": "lz4"}
    produce(kafka, topic, [Message(b"a" * 500_000)] * 140, config=batches)
    purge(kafka, topic, {0: 5})

    [large, small, gone] = read(careful, topic, (2, 20), (3, 8), (0, 4))

    assert (large.answered_count, large.reason) == (
        0,
        "a batch there unpacks to more than 64 MB: not read",
    )
    assert gone.reason == "expired: the log begins at 5"
    assert (answered(small), offsets(small)) == ((5, 8, None), [5, 6, 7])


def test_time_by_the_broker_has_its_own_type(
    kafka: str, reader: LibrdkafkaReader, view: KafkaBrokerView
) -> None:
    topic = create_topic(kafka, config={"message.timestamp.type": "LogAppendTime"})
    produce(kafka, topic, messages(3))
    [found] = read(reader, topic, (0, 3))
    assert {each.head.timestamp_type for each in found.records} == {1}
    last = view.records_at(topic, {0: 2})[0]
    assert found.records[2].content_hash == last.content_hash


class NotUtf8(str):
    def encode(self, *_: str) -> bytes:
        return b"\xff\xfename"


def test_a_header_name_that_is_not_utf8_is_said_and_hides_no_other_record(
    kafka: str, reader: LibrdkafkaReader
) -> None:
    topic = create_topic(kafka)
    producer = KafkaProducer(bootstrap_servers=kafka)
    for headers in ([("a", b"1")], [(NotUtf8("?"), b"1")], []):
        producer.send(topic, b"v", headers=headers, partition=0).get(30)
    producer.close()

    [found] = read(reader, topic, (0, 3))

    assert (offsets(found), found.not_shown) == ([0, 2], frozenset({1}))
    assert (answered(found), found.answered_count) == ((0, 3, None), 2)


def test_many_partitions_are_read_together(kafka: str, reader: LibrdkafkaReader) -> None:
    topic = create_topic(kafka, partitions=100)
    for partition in range(0, 100, 10):
        produce(kafka, topic, messages(5), partition=partition)
    slices = [OffsetRange(TopicPartition(topic, each), 0, 5) for each in range(100)]
    begun = time.monotonic()

    found = reader.read(slices, COMMITTED)

    assert time.monotonic() - begun < 10
    assert [len(each.records) for each in found] == [5 if n % 10 == 0 else 0 for n in range(100)]
    assert {each.reason for each in found[1:10]} == {"the broker shows nothing from 0 on"}


def test_no_group_is_joined_and_nothing_is_committed(kafka: str, reader: LibrdkafkaReader) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, messages(10))
    read(reader, topic, (0, 5), (6, 10))
    admin = AdminClient({"bootstrap.servers": kafka})  # a dropped client may drop its answer, too
    listed = admin.list_consumer_groups().result(30)
    assert "tallystick-second-reader" not in {each.group_id for each in listed.valid}


def test_a_deleted_topic_is_an_error_and_the_reader_goes_on(
    kafka: str, reader: LibrdkafkaReader
) -> None:
    gone, other = create_topic(kafka), create_topic(kafka)
    produce(kafka, other, messages(3))
    delete_topic(kafka, gone)
    impatient = LibrdkafkaReader({"bootstrap.servers": kafka}, patience_seconds=2)
    with pytest.raises(Exception, match=r"does not exist|did not answer"):
        read(impatient, gone, (0, 3))
    impatient._patience = reader._patience
    [found] = read(impatient, other, (0, 3))
    assert offsets(found) == [0, 1, 2]
    impatient.close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedKafka]:
    with guarded_kafka(tmp_path_factory.mktemp("guarded")) as guarded:
        create_topic(guarded.open_servers, "orders")
        guarded.let_in(READER, "orders")
        produce(guarded.open_servers, "orders", messages(5))
        yield guarded


@pytest.mark.parametrize("tls", [False, True], ids=["plain", "tls"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_rights_on_the_topic_are_all_it_takes(
    guarded: GuardedKafka, mechanism: str, tls: bool
) -> None:
    reader = LibrdkafkaReader(guarded.properties(READER, mechanism, tls=tls))
    for _ in range(3):
        [found] = read(reader, "orders", (1, 4))
        assert offsets(found) == [1, 2, 3]
    reader.close()


def test_who_may_not_read_is_refused(guarded: GuardedKafka) -> None:
    reader = LibrdkafkaReader(guarded.properties(GUEST, "PLAIN"), patience_seconds=5)
    with pytest.raises(SourceRefused):
        read(reader, "orders", (0, 3))
    reader.close()
    wrong = guarded.properties(READER, "PLAIN") | {"sasl.password": "no-such-word"}
    reader = LibrdkafkaReader(wrong, patience_seconds=5)
    with pytest.raises(SourceRefused) as caught:
        read(reader, "orders", (0, 3))
    assert "no-such-word" not in str(caught.value)
    reader.close()
