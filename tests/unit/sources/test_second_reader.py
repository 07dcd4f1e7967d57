"""librdkafka reads exact offsets: what it answers for, what it says of the rest, how long it waits.

Against librdkafka's own broker in memory; the real one is asked in tests/integration.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError

from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.rows.second_read import SeenRecord
from tallystick.errors import BrokerUnavailable, ConfigurationError, TopicUnknown
from tallystick.sources.second_reader import LibrdkafkaReader
from tests.support.mock_kafka import MockKafka, mock_kafka

COMMITTED = Isolation.READ_COMMITTED
AT = 1_793_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[MockKafka]:
    with mock_kafka() as broker:
        broker.produce("orders", *[b"v%d" % n for n in range(20)], timestamp=AT)
        broker.produce("orders", *[b"w%d" % n for n in range(5)], partition=1, timestamp=AT)
        yield broker


@pytest.fixture
def reader(broker: MockKafka) -> Iterator[LibrdkafkaReader]:
    reader = LibrdkafkaReader({"bootstrap.servers": broker.servers}, patience_seconds=5)
    yield reader
    reader.close()


def a_slice(partition: int, from_offset: int, until_offset: int) -> OffsetRange:
    return OffsetRange(TopicPartition("orders", partition), from_offset, until_offset)


def a_record(offset: int, value: bytes, partition: int = 0) -> SeenRecord:
    return SeenRecord.of(
        partition=partition,
        offset=offset,
        timestamp_ms=AT,
        timestamp_type=0,
        key=None,
        value=value,
        headers=(),
    )


def test_each_slice_holds_exactly_its_own_offsets(reader: LibrdkafkaReader) -> None:
    slices = [a_slice(0, 3, 6), a_slice(0, 18, 20), a_slice(1, 0, 5), a_slice(0, 10, 11)]

    found = reader.read(slices, COMMITTED)

    assert [each.asked for each in found] == slices
    assert [each.reason for each in found] == [None] * 4
    assert found[0].records == tuple(a_record(n, b"v%d" % n) for n in (3, 4, 5))
    assert found[1].records == tuple(a_record(n, b"v%d" % n) for n in (18, 19))
    assert found[2].records == tuple(a_record(n, b"w%d" % n, 1) for n in range(5))
    assert found[3].records == (a_record(10, b"v10"),)
    assert sum(each.answered_count for each in found) == 11


def test_what_lies_behind_the_end_of_the_log_is_not_answered_for(reader: LibrdkafkaReader) -> None:
    [reaching, behind] = reader.read([a_slice(0, 18, 25), a_slice(1, 9, 12)], COMMITTED)

    assert [each.offset for each in reaching.records] == [18, 19]
    assert (reaching.from_offset, reaching.until_offset) == (18, 20)
    assert reaching.reason == "the broker shows nothing from 20 on"
    assert (behind.records, behind.answered_count, behind.reason) == ((), 0, "the log ends at 5")


def test_headers_are_compared_as_c_strings_with_null_apart_from_empty(
    broker: MockKafka, reader: LibrdkafkaReader
) -> None:
    headers = [("a\0b", b"x"), ("n", None), ("e", b""), ("n", b"1"), ("naïve", b"\xff\0")]
    broker.produce("headers", b"v", key=b"", headers=headers, timestamp=AT)

    [found] = reader.read([OffsetRange(TopicPartition("headers", 0), 0, 1)], COMMITTED)

    landed = SeenRecord.of(
        partition=0, offset=0, timestamp_ms=AT, timestamp_type=0, key=b"", value=b"v",
        headers=headers,
    )  # fmt: skip
    assert found.records == (landed,)
    for other in (headers[1:], [*headers[:1], ("n", b""), *headers[2:]]):
        changed = SeenRecord.of(
            partition=0, offset=0, timestamp_ms=AT, timestamp_type=0, key=b"", value=b"v",
            headers=other,
        )  # fmt: skip
        assert not landed.is_same_as(changed)


def test_one_reader_is_used_again_and_again_without_new_connections(
    reader: LibrdkafkaReader,
) -> None:
    reader.read([a_slice(0, 0, 5)], COMMITTED)
    first = dict(reader._consumers)
    begun = time.monotonic()
    for start in range(15):
        [found] = reader.read([a_slice(0, start, start + 5)], COMMITTED)
        assert [each.offset for each in found.records] == list(range(start, start + 5))
    assert time.monotonic() - begun < 5
    assert reader._consumers == first


def test_many_slices_of_large_batches_cost_one_look_each(
    broker: MockKafka, reader: LibrdkafkaReader
) -> None:
    for partition in range(3):
        values = [b"%0199d" % n for n in range(20_000)]
        broker.produce("large", *values, partition=partition)
    slices = [
        OffsetRange(TopicPartition("large", partition), start, start + 50)
        for partition in range(3)
        for start in range(0, 20_000, 400)
    ]
    begun = time.monotonic()

    found = reader.read(slices, COMMITTED)

    assert [each.reason for each in found] == [None] * 150
    assert all(
        [one.offset for one in each.records]
        == list(range(each.asked.from_offset, each.asked.until_offset))
        for each in found
    )
    assert time.monotonic() - begun < 10


def test_a_silent_broker_is_given_up(broker: MockKafka) -> None:
    silent = LibrdkafkaReader({"bootstrap.servers": "127.0.0.1:1"}, patience_seconds=0.5)
    begun = time.monotonic()
    with pytest.raises(BrokerUnavailable, match="second reader"):
        silent.read([a_slice(0, 0, 5), a_slice(0, 9, 12)], COMMITTED)
    silent.close()
    assert time.monotonic() - begun < 5


def test_a_partition_that_is_not_there_is_said(broker: MockKafka) -> None:
    reader = LibrdkafkaReader({"bootstrap.servers": broker.servers}, patience_seconds=0.5)
    with pytest.raises((TopicUnknown, BrokerUnavailable)):
        reader.read([OffsetRange(TopicPartition("orders", 99), 0, 1)], COMMITTED)
    reader.close()


def test_an_unknown_property_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        LibrdkafkaReader({"bootstrap.servers": "a:1", "auto.offset.reset": "latest"})
    shown = repr(LibrdkafkaReader({"bootstrap.servers": "a:1", "client.id": "hidden"}))
    assert shown == "LibrdkafkaReader('a:1')"


def test_nothing_is_asked_for_no_slice() -> None:
    assert LibrdkafkaReader({"bootstrap.servers": "127.0.0.1:1"}).read([], COMMITTED) == ()


NO_TOKEN = "Failed to acquire SASL OAUTHBEARER token: "


@pytest.mark.parametrize(
    ("words", "is_final"),
    [
        ("Failed to connect to 127.0.0.1:1 after 0 ms: Could not connect to server", False),
        ("HTTP error 503", False),
        ("HTTP error 401", True),
        ('{"error": "invalid_client"}', True),
    ],
)
def test_a_token_that_cannot_be_had_now_is_no_refusal(words: str, is_final: bool) -> None:
    given = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.client.id": "vera",
        "sasl.oauthbearer.client.secret": "pa55-word",
        "sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/token",
    }
    reader = LibrdkafkaReader(given)
    reader._hear(KafkaError(KafkaError._AUTHENTICATION, NO_TOKEN + words))
    reader._hear(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    assert (reader._refusal is not None) == is_final
    told = f"token endpoint https://127.0.0.1:1/token: {NO_TOKEN}{words}"
    assert reader._last_trouble == told
