"""Answers that no broker gives on demand: a moved leader, a fenced epoch, a quota, none at all."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest
from kafka import errors as kafka_errors
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import MetadataRequest

from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.errors import BrokerUnavailable, LogUnreadable, SourceRefused, TopicUnknown
from tallystick.sources import leader_connections
from tallystick.sources.batch_heads import BatchSearch
from tallystick.sources.broker_answers import AskAgain
from tallystick.sources.client_properties import client_properties
from tallystick.sources.hole_walk import AbortedTransaction
from tallystick.sources.leader_connections import LeaderConnections
from tallystick.sources.leader_reads import LeaderReads, Place
from tests.support.kafka_batches import a_batch
from tests.support.kafka_scripted import ScriptedClient, fetched, metadata, part
from tests.support.store_server import dead_url, silent_server

TOPIC = TopicPartition("orders", 0)
COMMITTED, UNCOMMITTED = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED
NOT_LEADER, FENCED, UNKNOWN_EPOCH, OUT_OF_RANGE, UNKNOWN_TOPIC, DENIED = 6, 74, 75, 1, 3, 29


class Reads(Protocol):
    def __call__(self, client: ScriptedClient, *, patience_seconds: float = 60) -> LeaderReads: ...


@pytest.fixture
def reads_of(monkeypatch: pytest.MonkeyPatch) -> Reads:
    def reads_of(client: ScriptedClient, *, patience_seconds: float = 60) -> LeaderReads:
        def opened(config: object) -> ScriptedClient:
            client.opened += 1
            return client

        monkeypatch.setattr(leader_connections, "open_client", opened)
        given = client_properties({"bootstrap.servers": "one:9092"})
        connections = LeaderConnections(given, request_seconds=0.3)
        return LeaderReads(connections, patience_seconds=patience_seconds)

    return reads_of


LED = metadata({0: (1, 5)})
DATA = part(records=b"batch", aborted=[(7, 3)])


def test_the_leader_is_looked_up_once(reads_of: Reads) -> None:
    client = ScriptedClient(metadata=[LED], fetch=[fetched(DATA)])
    reads = reads_of(client)
    for _ in range(2):
        answer = reads.fetch(TOPIC, 3, COMMITTED, max_bytes=10)
        assert answer is not None
        assert (answer.records, answer.readable_until) == (b"batch", 90)
        assert answer.aborted == [AbortedTransaction(7, 3)]
    assert len(client.sent) == 3
    assert client.fetches() == [(1, [(0, 3, 5)])] * 2
    plain = reads.fetch(TOPIC, 3, UNCOMMITTED, max_bytes=10)
    assert plain is not None
    assert plain.readable_until == 100


@pytest.mark.parametrize("code", [NOT_LEADER, FENCED, UNKNOWN_EPOCH])
def test_a_moved_leader_is_looked_up_again(reads_of: Reads, code: int) -> None:
    moved = metadata({0: (2, 6)})
    client = ScriptedClient(metadata=[LED, moved], fetch=[fetched(part(code=code)), fetched(DATA)])
    assert reads_of(client).fetch(TOPIC, 3, COMMITTED, max_bytes=10) is not None
    assert client.fetches() == [(1, [(0, 3, 5)]), (2, [(0, 3, 6)])]


def test_a_leader_that_keeps_moving_is_given_up(reads_of: Reads) -> None:
    client = ScriptedClient(metadata=[LED], fetch=[fetched(part(code=NOT_LEADER))])
    with pytest.raises(BrokerUnavailable, match="fetch from orders-0: NotLeaderFor"):
        reads_of(client, patience_seconds=0.3).fetch(TOPIC, 3, COMMITTED, max_bytes=10)


def test_a_partition_without_leader_is_waited_for(reads_of: Reads) -> None:
    client = ScriptedClient(
        metadata=[metadata({0: (-1, 4)}), metadata({}), LED], fetch=[fetched(DATA)]
    )
    assert reads_of(client).fetch(TOPIC, 3, COMMITTED, max_bytes=10) is not None
    client = ScriptedClient(metadata=[metadata({0: (-1, 4)})])
    with pytest.raises(BrokerUnavailable, match="orders-0 has no leader"):
        reads_of(client, patience_seconds=0.3).fetch(TOPIC, 3, COMMITTED, max_bytes=10)


def test_an_answer_without_the_partition_is_no_answer(reads_of: Reads) -> None:
    """A broker over its quota answers so (KIP-219)."""
    client = ScriptedClient(metadata=[LED], fetch=[fetched(), fetched(DATA)])
    assert reads_of(client).fetch(TOPIC, 3, COMMITTED, max_bytes=10) is not None
    client = ScriptedClient(metadata=[LED], fetch=[fetched()])
    with pytest.raises(BrokerUnavailable, match="leaves orders-0 out"):
        reads_of(client, patience_seconds=0.3).fetch(TOPIC, 3, COMMITTED, max_bytes=10)


def test_an_empty_answer_is_believed_only_when_it_stays(reads_of: Reads) -> None:
    client = ScriptedClient(metadata=[LED], fetch=[fetched(part()), fetched(DATA)])
    answer = reads_of(client).fetch(TOPIC, 3, COMMITTED, max_bytes=10)
    assert answer is not None
    assert answer.records == b"batch"
    client = ScriptedClient(metadata=[LED], fetch=[fetched(part())])
    answer = reads_of(client).fetch(TOPIC, 3, COMMITTED, max_bytes=10)
    assert answer is not None
    assert answer.records == b""
    assert len(client.fetches()) == 3


@pytest.mark.parametrize("broker", [(2, 8), (3, 0), (4, 0)])
def test_no_leader_may_send_us_to_a_replica(reads_of: Reads, broker: tuple[int, int]) -> None:
    """From version 11 on it may (KIP-392): without records, and only a new field says why."""
    client = ScriptedClient(metadata=[LED], fetch=[fetched(DATA)])
    reads_of(client).fetch(TOPIC, 3, COMMITTED, max_bytes=10)
    [request] = [each for _, each in client.sent if isinstance(each, FetchRequest)]
    assert BrokerVersionData(broker).api_version(request) == 10


def test_an_empty_answer_at_the_readable_end_is_believed_at_once(reads_of: Reads) -> None:
    client = ScriptedClient(metadata=[LED], fetch=[fetched(part())])
    assert reads_of(client).fetch(TOPIC, 90, COMMITTED, max_bytes=10) is not None
    assert len(client.fetches()) == 1


def test_out_of_range_is_none(reads_of: Reads) -> None:
    client = ScriptedClient(metadata=[LED], fetch=[fetched(part(code=OUT_OF_RANGE))])
    assert reads_of(client).fetch(TOPIC, 3, COMMITTED, max_bytes=10) is None


def test_a_lost_connection_opens_another_client(reads_of: Reads) -> None:
    lost = kafka_errors.KafkaConnectionError("socket disconnected")
    client = ScriptedClient(metadata=[lost, LED], fetch=[lost, fetched(DATA)])
    assert reads_of(client).fetch(TOPIC, 3, COMMITTED, max_bytes=10) is not None
    assert (client.opened, client.closed) == (3, 2)


@pytest.mark.parametrize(
    "failure",
    [
        kafka_errors.SaslAuthenticationFailedError("wrong"),
        kafka_errors.UnsupportedSaslMechanismError("wrong"),
        kafka_errors.IncompatibleBrokerVersion("wrong"),
    ],
)
def test_a_refused_connection_is_final(reads_of: Reads, failure: Exception) -> None:
    client = ScriptedClient(metadata=[failure])
    with pytest.raises(SourceRefused, match="Kafka refused the connection to one:9092"):
        reads_of(client).fetch(TOPIC, 3, COMMITTED, max_bytes=10)
    assert (client.opened, client.closed) == (1, 1)


def test_a_missing_right_is_final(reads_of: Reads) -> None:
    client = ScriptedClient(metadata=[LED], fetch=[fetched(part(code=DENIED))])
    with pytest.raises(SourceRefused, match=r"fetch from orders-0 at .* has no right Read on"):
        reads_of(client).fetch(TOPIC, 3, COMMITTED, max_bytes=10)


def test_a_missing_topic_is_unknown(reads_of: Reads) -> None:
    client = ScriptedClient(metadata=[metadata({}, code=UNKNOWN_TOPIC)])
    with pytest.raises(TopicUnknown):
        reads_of(client).fetch(TOPIC, 3, COMMITTED, max_bytes=10)


def test_some_partitions_go_to_the_first_one_s_leader(reads_of: Reads) -> None:
    client = ScriptedClient(
        metadata=[metadata({0: (2, 1), 1: (1, 1), 2: (2, 3)})], fetch=[fetched(part(0), part(2))]
    )
    places = [Place(each, 3, 10) for each in (0, 1, 2, 9)]
    assert sorted(reads_of(client).fetch_some("orders", places)) == [0, 2]
    assert client.fetches() == [(2, [(0, 3, 1), (2, 3, 3)])]


def test_a_search_asks_again_for_what_was_cut_off_or_left_out(reads_of: Reads) -> None:
    small, large = a_batch(3, 6), a_batch(3, 4, values=[b"x" * 50_000])
    led = {0: (1, 0), 1: (2, 0), 2: (1, 0), 3: (1, 0), 4: (1, 0)}
    client = ScriptedClient(
        metadata=[metadata(led)],
        fetch=[
            fetched(
                part(0, records=small),
                part(2, records=small[:40]),
                part(3, code=OUT_OF_RANGE),
                part(4, records=large[:99]),
            ),
            fetched(part(2, records=small)),  # cut off though there was room: asked for alone
            fetched(part(1, records=a_batch(7, 9))),  # the other leader; the record is gone
            fetched(part(4, records=large)),
        ],
    )
    found = BatchSearch(reads_of(client), "orders", dict.fromkeys(range(5), 3)).records()
    assert sorted(found) == [0, 2, 4]
    assert found[0].content_hash != found[2].content_hash  # the partition is hashed too
    asked = [(node, [each for each, _, _ in parts]) for node, parts in client.fetches()]
    assert asked == [(1, [0, 2, 3, 4]), (1, [2]), (2, [1]), (1, [4])]
    last = client.sent[-1][1].topics[0].partitions[0]
    assert last.partition_max_bytes == len(large)


def test_a_damaged_record_names_its_place(reads_of: Reads) -> None:
    batch = bytearray(a_batch(3, 6))
    batch[61] ^= 0xFF
    client = ScriptedClient(metadata=[LED], fetch=[fetched(part(records=bytes(batch)))])
    with pytest.raises(LogUnreadable, match="the record of orders-0 at 4: record batch at 3"):
        BatchSearch(reads_of(client), "orders", {0: 4}).records()


def epoch_ends(request: Any) -> Any:
    """Epoch 3 ends at 30, and so on; an epoch above 9 is not known."""
    (topic,) = request.topics
    parts = [
        SimpleNamespace(
            partition=each.partition,
            error_code=0,
            end_offset=each.leader_epoch * 10 if each.leader_epoch <= 9 else -1,
        )
        for each in topic.partitions
    ]
    return SimpleNamespace(topics=[SimpleNamespace(partitions=parts)])


def test_epochs_are_asked_for_in_one_request_a_broker(reads_of: Reads) -> None:
    led = metadata({each: (1 + each % 2, 5) for each in range(100)})
    client = ScriptedClient(metadata=[led], epochs=[epoch_ends])
    found = reads_of(client).epoch_ends("orders", dict.fromkeys(range(99), 3) | {99: 10})
    assert found == dict.fromkeys(range(99), 30)
    assert client.asked("epochs") == [1, 2]


def test_an_epoch_is_asked_for_again_where_the_leader_has_moved(reads_of: Reads) -> None:
    def fenced_once(request: Any) -> Any:
        answer = epoch_ends(request)
        answer.topics[0].partitions[0].error_code = FENCED
        return answer

    client = ScriptedClient(metadata=[LED], epochs=[fenced_once, epoch_ends])
    assert reads_of(client).epoch_ends("orders", {0: 4}) == {0: 40}
    assert len(client.asked("metadata")) == 2


def test_no_epoch_is_no_request(reads_of: Reads) -> None:
    client = ScriptedClient(metadata=[LED], epochs=[epoch_ends])
    assert reads_of(client).epoch_ends("orders", {}) == {}
    assert client.sent == []


def test_records_of_many_logs_are_asked_in_one_request_a_leader(reads_of: Reads) -> None:
    leaders = {each: (1 + each % 3, 5) for each in range(1_500)}

    def answer(request: FetchRequest) -> Any:
        (topic,) = request.topics
        return fetched(*(part(each.partition, high=0, stable=0) for each in topic.partitions))

    client = ScriptedClient(metadata=[metadata(leaders)], fetch=[answer])
    assert BatchSearch(reads_of(client), "orders", dict.fromkeys(leaders, 3)).records() == {}
    assert sorted(client.asked("fetch")) == [1, 2, 3]


def asked(servers: str, seconds: float) -> AskAgain:
    connections = LeaderConnections(
        client_properties({"bootstrap.servers": servers}), request_seconds=30
    )
    request = MetadataRequest(max_version=12, topics=[])
    try:
        with pytest.raises(AskAgain) as caught:
            connections.send(connections.any_node(), request, lambda: seconds)
    finally:
        connections.close()
    return caught.value


@pytest.mark.parametrize(("seconds", "is_cut"), [(0.2, True), (1.5, False)])
def test_a_broker_is_cut_short_where_it_had_but_a_moment(seconds: float, is_cut: bool) -> None:
    with silent_server() as url:
        failure = asked(urlsplit(url).netloc, seconds)
    assert failure.is_cut is is_cut
    assert "no answer in time" in str(failure.becomes)


def test_a_connection_that_is_refused_is_not_cut_short_and_told_by_us_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert not asked(urlsplit(dead_url()).netloc, 30).is_cut
    assert caplog.messages == []
