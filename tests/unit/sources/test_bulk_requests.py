"""What we pack, the library reads; what the library packs, we read: all versions that we know."""

from __future__ import annotations

from io import BytesIO
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.consumer import ListOffsetsResponse

from tallystick.sources.bulk_fetch import Fetch, FetchPlace
from tallystick.sources.bulk_metadata import Broker, DescribeTopic
from tallystick.sources.bulk_offsets import ListOffsets
from tallystick.sources.bulk_request import BulkRequest
from tests.support.kafka_scripted import as_bytes

int16, int32 = st.integers(-(2**15), 2**15 - 1), st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)
replicas = st.lists(int32, max_size=5)


def of_version(request: BulkRequest, version: int) -> Any:
    """The request of this version, as the library reads all of its bytes."""
    request.API_VERSION = version
    request.with_header(correlation_id=7, client_id="tallystick")
    sent = request.encode(framed=True, header=True)
    assert int.from_bytes(sent[:4], "big") == len(sent) - 4
    whole = BytesIO(sent[4:])
    header = request.kind.parse_header(whole, version=version)
    assert (header.request_api_key, header.request_api_version) == (request.API_KEY, version)
    assert (header.correlation_id, header.client_id) == (7, "tallystick")
    body = whole.read()
    read = request.kind.decode(body, version=version)
    assert bytes(read.encode()) == body
    return read


def read_again(request: BulkRequest, version: int, answer: Any) -> Any:
    """The library's bytes of an answer, as the request reads them behind the header."""
    request.API_VERSION = version
    data = as_bytes(request.answer_kind, answer, version)
    found = request.answer(data)
    for size in range(0, len(data), 1 + len(data) // 20):
        with pytest.raises(ValueError, match="ends"):
            request.answer(data[:size])
    with pytest.raises(ValueError, match="1 bytes are left"):
        request.answer(data + b"x")
    return found


@given(names, st.dictionaries(int32, int32, max_size=4), int64, st.sampled_from([6, 7]))
def test_offsets_are_asked_as_the_library_asks(
    topic: str, epochs: dict[int, int], timestamp: int, version: int
) -> None:
    [asked] = of_version(ListOffsets(topic, epochs, timestamp, 1), version).topics
    assert asked.name == topic
    told = {each.partition_index: each.current_leader_epoch for each in asked.partitions}
    assert told == epochs
    assert {each.timestamp for each in asked.partitions} <= {timestamp}


@given(st.lists(st.tuples(int32, int16, int64, int64, int32), max_size=4), int32)
def test_offsets_are_read_as_the_library_writes_them(
    rows: list[tuple[int, int, int, int, int]], throttle: int
) -> None:
    fields = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch")
    partitions = [SimpleNamespace(**dict(zip(fields, each, strict=True))) for each in rows]
    topic = SimpleNamespace(name="orders", partitions=partitions)
    answer = SimpleNamespace(throttle_time_ms=throttle, topics=[topic])
    found = read_again(ListOffsets("orders", {}, 0, 0), 7, answer)
    columns = (found.partitions, found.error_codes, found.timestamps, found.offsets)
    assert list(zip(*columns, strict=True)) == [each[:4] for each in rows]
    assert found.throttle_time_ms == throttle


def test_tags_that_nobody_knows_yet_are_passed() -> None:
    partitions = [SimpleNamespace(partition_index=each, offset=each) for each in range(3)]
    topic = SimpleNamespace(name="orders", partitions=partitions)
    data = as_bytes(ListOffsetsResponse, SimpleNamespace(topics=[topic]), 7)
    # The tags of the second of three rows: one, number 9, of three bytes.
    second = len(data) - 2 - 27 - 1
    tagged = data[:second] + b"\x01\x09\x03new" + data[second + 1 :]
    found = ListOffsets("orders", {}, 0, 0)
    assert found.answer(tagged) == found.answer(data)
    assert found.answer(data).offsets == (0, 1, 2)


@given(names, st.lists(st.tuples(int32, int32, int64, int32), max_size=4))
def test_records_are_asked_as_the_library_asks(
    topic: str, places: list[tuple[int, int, int, int]]
) -> None:
    read = of_version(Fetch(topic, [FetchPlace(*each) for each in places], 1), 10)
    assert (read.replica_id, read.max_wait_ms, read.min_bytes, read.session_epoch) == (-1, 0, 0, -1)
    assert (read.max_bytes, read.isolation_level, read.session_id) == (2**31 - 1, 1, 0)
    [asked] = read.topics
    assert asked.topic == topic
    assert [
        (each.partition, each.current_leader_epoch, each.fetch_offset, each.partition_max_bytes)
        for each in asked.partitions
    ] == places
    assert {each.log_start_offset for each in asked.partitions} <= {-1}


transactions = st.none() | st.lists(st.tuples(int64, int64), max_size=3)


@given(
    st.lists(
        st.tuples(int32, int16, int64, int64, transactions, st.none() | st.binary(max_size=40)),
        max_size=3,
    ),
    int16,
)
def test_records_are_read_as_the_library_writes_them(rows: list[Any], error_code: int) -> None:
    partitions = [
        SimpleNamespace(
            partition_index=partition,
            error_code=code,
            high_watermark=high,
            last_stable_offset=stable,
            aborted_transactions=aborted
            and [SimpleNamespace(producer_id=a, first_offset=b) for a, b in aborted],
            records=records,
        )
        for partition, code, high, stable, aborted, records in rows
    ]
    topic = SimpleNamespace(topic="orders", partitions=partitions)
    answer = SimpleNamespace(error_code=error_code, responses=[topic])
    found = read_again(Fetch("orders", [], 0), 10, answer)
    assert found.error_code == error_code
    assert list(found.parts) == [
        (partition, code, high, stable, aborted or [], records or b"")
        for partition, code, high, stable, aborted, records in rows
    ]


@pytest.mark.parametrize("version", [10, 11, 12])
@given(
    rows=st.lists(st.tuples(int16, int32, int32, int32, replicas, replicas, replicas), max_size=3),
    id_=st.none() | st.uuids(),
)
def test_a_topic_is_read_as_the_library_writes_it(
    version: int, rows: list[Any], id_: UUID | None
) -> None:
    names_ = ("error_code", "partition_index", "leader_id", "leader_epoch")
    names_ += ("replica_nodes", "isr_nodes", "offline_replicas")
    partitions = [SimpleNamespace(**dict(zip(names_, each, strict=True))) for each in rows]
    topic = SimpleNamespace(error_code=3, name="orders", topic_id=id_, partitions=partitions)
    brokers = [
        SimpleNamespace(node_id=1, host="one", port=9092, rack="a"),
        SimpleNamespace(node_id=2, host="two", port=9093, rack=None),
    ]
    answer = SimpleNamespace(
        throttle_time_ms=5, brokers=brokers, cluster_id="c", controller_id=2, topics=[topic]
    )
    found = read_again(DescribeTopic("orders"), version, answer)
    assert found.brokers == [Broker(1, "one", 9092, "a"), Broker(2, "two", 9093, None)]
    assert (found.cluster_id, found.controller_id, found.throttle_time_ms) == ("c", 2, 5)
    assert (found.topic.error_code, found.topic.topic_id) == (3, id_)
    columns = (found.topic.error_codes, found.topic.partitions)
    columns += (found.topic.leader_ids, found.topic.leader_epochs)
    assert list(zip(*columns, strict=True)) == [each[:4] for each in rows]


@pytest.mark.parametrize("version", [10, 11, 12])
def test_asking_for_a_topic_makes_none(version: int) -> None:
    read = of_version(DescribeTopic("orders"), version)
    assert [each.name for each in read.topics] == ["orders"]
    assert read.allow_auto_topic_creation is False


@pytest.mark.parametrize(
    ("broker", "versions"), [((2, 8), [6, 10, 11]), ((3, 0), [7, 10, 11]), ((4, 0), [7, 10, 12])]
)
def test_each_broker_that_gives_topics_an_id_knows_a_version_that_we_know(
    broker: tuple[int, int], versions: list[int]
) -> None:
    known = BrokerVersionData(broker)
    requests = [ListOffsets("orders", {}, 0, 0), Fetch("orders", [], 0), DescribeTopic("orders")]
    assert [known.api_version(each) for each in requests] == versions
