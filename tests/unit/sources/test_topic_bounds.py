"""Answers that no broker gives on demand: short metadata, moving leaders, a topic that changes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Protocol

import pytest
from kafka import errors as kafka_errors
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from tallystick.domain.logs.snapshot import PartitionBounds
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.errors import BrokerUnavailable, RightMissing, SourceRefused, TopicUnknown
from tallystick.sources import leader_connections
from tallystick.sources.client_properties import client_properties
from tallystick.sources.leader_connections import LeaderConnections
from tallystick.sources.topic_bounds import TopicBounds, TopicPolicy
from tests.support.kafka_scripted import OTHER_ID, ScriptedClient, metadata

ID, ANOTHER = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
NOT_LEADER, FENCED, NOT_AVAILABLE, UNKNOWN_TOPIC, DENIED = 6, 74, 78, 3, 29
EARLIEST, LATEST = -2, -1


def led(partitions: Sequence[int], *, node: int = 1, epoch: int = 0, **more: Any) -> Any:
    return metadata(dict.fromkeys(partitions, (node, epoch)), **more)


def offsets(start: int, stable: int, high: int, *, code: int = 0, short: int = 0) -> Any:
    """A leader's answer, by what was asked; `short` partitions are left out at the end."""

    def answer(request: Any) -> Any:
        (topic,) = request.topics
        asked = topic.partitions[: len(topic.partitions) - short]
        ends = {EARLIEST: start, LATEST: stable if request.isolation_level else high}
        parts = [
            SimpleNamespace(
                partition_index=each.partition_index,
                error_code=code,
                offset=ends.get(each.timestamp, -1),
            )
            for each in asked
        ]
        return SimpleNamespace(topics=[SimpleNamespace(partitions=parts)])

    return answer


def configs(code: int = 0, **values: str) -> Any:
    entries = [
        SimpleNamespace(name=name.replace("_", "."), value=value) for name, value in values.items()
    ]
    return SimpleNamespace(results=[SimpleNamespace(error_code=code, configs=entries)])


class Topics(Protocol):
    def __call__(self, client: ScriptedClient, *, patience_seconds: float = 60) -> TopicBounds: ...


@pytest.fixture
def topics_of(monkeypatch: pytest.MonkeyPatch) -> Topics:
    def topics_of(client: ScriptedClient, *, patience_seconds: float = 60) -> TopicBounds:
        monkeypatch.setattr(leader_connections, "open_client", lambda config: client)
        given = client_properties({"bootstrap.servers": "one:9092"})
        connections = LeaderConnections(given, request_seconds=0.3)
        return TopicBounds(connections, patience_seconds=patience_seconds)

    return topics_of


WHOLE = led(range(3))
MIDDLING = offsets(0, 5, 9)
EVERYWHERE = {each: PartitionBounds(0, 9, 5, 0) for each in range(3)}
LOST = kafka_errors.KafkaConnectionError("socket disconnected")


@pytest.mark.parametrize(
    "first",
    [
        led([]),
        led([0, 2]),
        led([1, 2]),
        led(range(3), node=-1),
        led([], code=5),
        led([], code=UNKNOWN_TOPIC),
        LOST,
    ],
    ids=["empty", "middle", "head", "leaderless", "not available", "unknown", "lost"],
)
def test_a_short_metadata_answer_is_asked_again(topics_of: Topics, first: Any) -> None:
    client = ScriptedClient(metadata=[first, WHOLE], offsets=[MIDDLING])
    identity, found = topics_of(client).bounds("orders")
    assert (identity.cluster_id, identity.topic_id) == ("cluster", ID)
    assert found == EVERYWHERE
    assert len(client.asked("metadata")) == 3


@pytest.mark.parametrize(
    ("other", "topic_id", "count"),
    [
        (led(range(2)), ID, 2),
        (led(range(4)), ID, 4),
        (led(range(3), topic_id=OTHER_ID), ANOTHER, 3),
    ],
    ids=["fewer", "more", "another id"],
)
def test_two_metadata_answers_must_agree(
    topics_of: Topics, other: Any, topic_id: str, count: int
) -> None:
    """Fewer: one broker's short answer; more: partitions were added; another id: made anew."""
    client = ScriptedClient(metadata=[other, WHOLE], offsets=[MIDDLING])
    identity, found = topics_of(client).bounds("orders")
    assert (identity.topic_id, found) == (ID, EVERYWHERE)
    client = ScriptedClient(metadata=[WHOLE, other], offsets=[MIDDLING])
    identity, found = topics_of(client).bounds("orders")
    assert (identity.topic_id, len(found)) == (topic_id, count)


def test_the_second_metadata_answer_comes_from_another_broker(topics_of: Topics) -> None:
    client = ScriptedClient(metadata=[metadata({0: (2, 0), 1: (3, 0)})], offsets=[MIDDLING])
    topics = topics_of(client)
    topics.bounds("orders")
    assert client.asked("metadata") == ["bootstrap-0", 2]
    assert client.asked("offsets") == [2, 3] * 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (led([]), "lists partitions none of topic 'orders' only"),
        (led([*range(5), *range(6, 20)]), "0, 1, 2, 3, 4, 6, 7, 8, 9, 10 and 9 more of topic"),
        (led(range(3), node=-1), "'orders' has no leader for 0, 1, 2"),
        (LOST, "socket disconnected"),
    ],
)
def test_an_answer_that_stays_short_is_no_answer(
    topics_of: Topics, answer: Any, words: str
) -> None:
    client = ScriptedClient(metadata=[answer], offsets=[MIDDLING])
    with pytest.raises(BrokerUnavailable, match="Kafka at one:9092 did not answer") as caught:
        topics_of(client, patience_seconds=0.3).bounds("orders")
    assert words in str(caught.value)


def test_answers_that_never_agree_are_no_answer(topics_of: Topics) -> None:
    swinging = [led(range(3 if n % 2 else 2)) for n in range(100)]
    client = ScriptedClient(metadata=swinging, offsets=[MIDDLING])
    with pytest.raises(BrokerUnavailable, match="differ about topic 'orders': 2 and 3 partitions"):
        topics_of(client, patience_seconds=0.3).bounds("orders")


@pytest.mark.parametrize(
    "first",
    [
        offsets(0, 5, 9, code=NOT_LEADER),
        offsets(0, 5, 9, code=FENCED),
        offsets(0, 5, 9, code=NOT_AVAILABLE),
        offsets(0, 5, 9, short=1),
        offsets(7, 5, 6),
        offsets(0, 9, 8),
        LOST,
    ],
    ids=["not leader", "fenced", "not available", "short", "start", "stable", "lost"],
)
def test_bounds_that_do_not_fit_are_asked_again(topics_of: Topics, first: Any) -> None:
    # An error ends a try at its first request, bounds out of order after its third.
    client = ScriptedClient(metadata=[WHOLE], offsets=[first, first, first, MIDDLING])
    _, found = topics_of(client).bounds("orders")
    assert found == EVERYWHERE


def test_the_epoch_that_metadata_gave_is_named_and_reported(topics_of: Topics) -> None:
    client = ScriptedClient(metadata=[led([0], epoch=7)], offsets=[MIDDLING])
    _, found = topics_of(client).bounds("orders")
    assert found == {0: PartitionBounds(0, 9, 5, 7)}
    epochs = [
        each.current_leader_epoch
        for _, request in client.sent
        if hasattr(request, "isolation_level")
        for each in request.topics[0].partitions
    ]
    assert epochs == [7, 7, 7]


def test_a_stable_offset_below_the_log_start_is_lifted_to_it(topics_of: Topics) -> None:
    client = ScriptedClient(metadata=[WHOLE], offsets=[offsets(3, 0, 5)])
    _, found = topics_of(client).bounds("orders")
    assert found[0] == PartitionBounds(3, 5, 3, 0)


def test_a_missing_topic_is_unknown(topics_of: Topics) -> None:
    client = ScriptedClient(metadata=[led([], code=UNKNOWN_TOPIC)])
    with pytest.raises(TopicUnknown):
        topics_of(client).bounds("orders")


def test_a_broker_without_topic_ids_is_too_old(topics_of: Topics) -> None:
    client = ScriptedClient(metadata=[led([0], topic_id=None)])
    with pytest.raises(SourceRefused, match=r"gives it no id; Kafka 2\.8"):
        topics_of(client).bounds("orders")


@pytest.mark.parametrize(
    ("broker", "versions"), [((2, 8), {11, 6}), ((3, 0), {11, 7}), ((4, 0), {12, 7})]
)
def test_each_broker_that_gives_topics_an_id_knows_what_it_is_asked(
    topics_of: Topics, broker: tuple[int, int], versions: set[int]
) -> None:
    client = ScriptedClient(metadata=[WHOLE], offsets=[MIDDLING])
    topics_of(client).bounds("orders")
    known = BrokerVersionData(broker)
    assert {known.api_version(request) for _, request in client.sent} == versions


@pytest.mark.parametrize("version", [10, 11, 12])
def test_asking_for_a_topic_makes_none(topics_of: Topics, version: int) -> None:
    client = ScriptedClient(metadata=[WHOLE], offsets=[MIDDLING])
    topics_of(client).bounds("orders")
    sent = next(request for _, request in client.sent if isinstance(request, MetadataRequest))
    read = MetadataRequest.decode(sent.encode(version=version), version=version)
    assert [each.name for each in read.topics] == ["orders"]
    assert read.allow_auto_topic_creation is False


def test_a_topic_without_id_or_rights_is_read_as_such() -> None:
    topic = MetadataResponse.MetadataResponseTopic(error_code=0, name="orders", partitions=[])
    answer = MetadataResponse(version=10, brokers=[], cluster_id="c", topics=[topic])
    [read] = MetadataResponse.decode(answer.encode(), version=10).topics
    assert (read.topic_id, read.authorized_operations) == (None, None)


# Numbers of AclOperation: 3 Read, 8 Describe, 10 DescribeConfigs.
@pytest.mark.parametrize(
    ("operations", "missing"),
    [({8, 10}, "Read on"), ({3, 8}, "DescribeConfigs on"), ({8}, "Read and DescribeConfigs on")],
)
def test_a_right_that_only_spark_would_miss_is_told_before_it(
    topics_of: Topics, operations: set[int], missing: str
) -> None:
    client = ScriptedClient(metadata=[led([0], operations=operations)])
    with pytest.raises(RightMissing, match=f"one:9092: its user has no right {missing} topic"):
        topics_of(client).bounds("orders")


@pytest.mark.parametrize("operations", [{3, 8, 10}, set(), None])
def test_a_broker_that_says_nothing_of_rights_is_believed(
    topics_of: Topics, operations: set[int] | None
) -> None:
    client = ScriptedClient(metadata=[led(range(3), operations=operations)], offsets=[MIDDLING])
    assert topics_of(client).bounds("orders")[1] == EVERYWHERE


def test_a_missing_right_is_final(topics_of: Topics) -> None:
    client = ScriptedClient(
        metadata=[led([], code=DENIED), WHOLE], configs=[configs(code=DENIED), configs()]
    )
    with pytest.raises(RightMissing, match=r"metadata of topic 'orders' at .* no right Read"):
        topics_of(client).bounds("orders")
    with pytest.raises(RightMissing, match=r"of topic 'orders' at .* no right DescribeConfigs"):
        topics_of(client).policy("orders")
    assert len(client.sent) == 2


@pytest.mark.parametrize(
    ("policy", "retention", "expected"),
    [
        ("delete", "1000", TopicPolicy(False, 1000)),
        ("delete", "-1", TopicPolicy(False, None)),
        ("compact", "1000", TopicPolicy(True, None)),
        ("compact, delete", "1000", TopicPolicy(True, 1000)),
        ("", "1000", TopicPolicy(False, None)),
    ],
)
def test_the_policy(topics_of: Topics, policy: str, retention: str, expected: TopicPolicy) -> None:
    client = ScriptedClient(configs=[configs(cleanup_policy=policy, retention_ms=retention)])
    assert topics_of(client).policy("orders") == expected


def test_a_size_bounds_a_log_that_is_deleted(topics_of: Topics) -> None:
    bounded = {"retention_ms": "-1", "retention_bytes": "5000"}
    client = ScriptedClient(
        configs=[configs(cleanup_policy=each, **bounded) for each in ("delete", "compact")]
    )
    topics = topics_of(client)
    assert topics.policy("orders") == TopicPolicy(False, None, 5000)
    assert topics.policy("orders") == TopicPolicy(True, None, None)


def test_the_longest_transaction_is_a_brokers_to_say(topics_of: Topics) -> None:
    client = ScriptedClient(
        configs=[
            configs(transaction_max_timeout_ms="3600000"),
            configs(code=31),
            configs(code=29),
            configs(),
        ]
    )
    topics = topics_of(client)
    assert topics.longest_transaction() == timedelta(hours=1)
    assert [topics.longest_transaction() for _ in range(3)] == [None, None, None]
    assert client.asked("configs") == [1, 1, 1, 1]


def test_single_questions(topics_of: Topics) -> None:
    client = ScriptedClient(metadata=[WHOLE], offsets=[offsets(4, 5, 9)])
    topics = topics_of(client, patience_seconds=0.3)
    assert topics.log_start_offset(TopicPartition("orders", 2)) == 4
    assert topics.offsets_at("orders", 1000, [0, 1]) == {0: None, 1: None}
    assert topics.offsets_at("orders", 1000, []) == {}
    with pytest.raises(BrokerUnavailable, match="orders-9 has no leader"):
        topics.offsets_at("orders", 1000, [9])


def test_a_leader_that_waits_for_its_replicas_is_left_out_alone(topics_of: Topics) -> None:
    """It can tell its log start, and not how far the log may be read: OFFSET_NOT_AVAILABLE."""

    def lagging(request: Any) -> Any:
        answer = MIDDLING(request)
        for part in answer.topics[0].partitions:
            is_end = request.topics[0].partitions[0].timestamp == LATEST
            if is_end and part.partition_index == 1:
                part.error_code = 78
        return answer

    client = ScriptedClient(metadata=[WHOLE], offsets=[lagging])
    identity, found = topics_of(client, patience_seconds=0.2).bounds("orders")
    assert identity.partitions == (0, 1, 2)
    assert found == {each: EVERYWHERE[each] for each in (0, 2)}


def test_no_bounds_while_all_leaders_wait_for_their_replicas(topics_of: Topics) -> None:
    client = ScriptedClient(metadata=[WHOLE], offsets=[offsets(0, 5, 9, code=78)])
    with pytest.raises(BrokerUnavailable, match=r"have not caught up|can tell"):
        topics_of(client, patience_seconds=0.2).bounds("orders")
