"""Answers that no broker gives on demand: short metadata, moving leaders, a topic that changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Node
from confluent_kafka._model import TopicPartitionInfo
from confluent_kafka.admin import ListOffsetsResultInfo, OffsetSpec, TopicDescription

from tallystick.domain.snapshot import PartitionBounds
from tallystick.errors import BrokerUnavailable, SourceRefused, TopicUnknown
from tallystick.sources import topic_bounds
from tallystick.sources.client_properties import client_properties
from tallystick.sources.topic_bounds import TopicBounds

NOWHERE = Node(-1, "", 0)
LEADER = Node(1, "one", 9092)
ID, OTHER_ID = "AAAAAAAAAAAAAAAAAAAAAA", "BBBBBBBBBBBBBBBBBBBBBB"
Bounds = tuple[int, int, int]


def described(ids: Iterable[int], *, topic_id: str = ID, leader: Node | None = LEADER) -> Any:
    partitions = [TopicPartitionInfo(each, leader, [], []) for each in ids]
    return TopicDescription("orders", topic_id, False, partitions)


def failed(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


def done(result: Any) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(result, Exception):
        future.set_exception(result)
    else:
        future.set_result(result)
    return future


class ScriptedAdmin:
    """An admin client that gives its answers one by one, the last of them for ever."""

    def __init__(
        self,
        metadata: Sequence[Any],
        bounds: Sequence[Bounds | Exception] = ((0, 5, 9),),
        epochs: Sequence[int] = (0,),
    ) -> None:
        self._metadata, self._bounds, self._epochs = list(metadata), list(bounds), list(epochs)
        self.asked_metadata = 0

    def describe_topics(self, topics: Any, *, request_timeout: float) -> Mapping[str, Future[Any]]:
        self.asked_metadata += 1
        return {"orders": done(_next(self._metadata))}

    def list_offsets(
        self, wanted: Mapping[Any, OffsetSpec], *, isolation_level: Any, request_timeout: float
    ) -> Mapping[Any, Future[Any]]:
        latest = {type(spec) for spec in wanted.values()} == {type(OffsetSpec.latest())}
        is_committed = isolation_level is IsolationLevel.READ_COMMITTED
        which = 0 if not latest else 1 if is_committed else 2
        bounds = self._bounds[0]
        if which == 2:
            _next(self._bounds)
        if isinstance(bounds, Exception):
            _next(self._bounds)
            return {each: done(bounds) for each in wanted}
        epoch = _next(self._epochs) if which else 0
        return {each: done(ListOffsetsResultInfo(bounds[which], -1, epoch)) for each in wanted}

    def poll(self, timeout: float) -> int:
        return 0


def _next(script: list[Any]) -> Any:
    return script.pop(0) if len(script) > 1 else script[0]


@pytest.fixture
def view_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[ScriptedAdmin], TopicBounds]:
    def view_of(admin: ScriptedAdmin) -> TopicBounds:
        monkeypatch.setattr(topic_bounds, "AdminClient", lambda *given, **more: admin)
        return TopicBounds(
            client_properties({"bootstrap.servers": "one:9092"}), patience_seconds=0.3
        )

    return view_of


WHOLE = described(range(3))
EVERYWHERE = {each: PartitionBounds(0, 9, 5, 0) for each in range(3)}


@pytest.mark.parametrize(
    "first",
    [
        described([]),
        described([0, 2]),
        described([1, 2]),
        described(range(3), leader=None),
        described(range(3), leader=NOWHERE),
        failed(KafkaError.LEADER_NOT_AVAILABLE),
        failed(KafkaError.UNKNOWN_TOPIC_OR_PART),
        failed(KafkaError._TRANSPORT),
        failed(KafkaError._SSL),
        failed(KafkaError._TIMED_OUT),
    ],
    ids=[
        "empty",
        "middle",
        "head",
        "none",
        "nowhere",
        "no leader",
        "unknown",
        "transport",
        "handshake",
        "late",
    ],
)
def test_a_short_metadata_answer_is_asked_again(
    view_of: Callable[[ScriptedAdmin], TopicBounds], first: Any
) -> None:
    admin = ScriptedAdmin([first, WHOLE])
    identity, found = view_of(admin).bounds("orders")
    assert (identity.topic_id, identity.partition_count) == (ID, 3)
    assert found == EVERYWHERE
    assert admin.asked_metadata == 3


@pytest.mark.parametrize(
    "second",
    [described(range(2)), described(range(4)), described(range(3), topic_id=OTHER_ID)],
    ids=["fewer", "more", "another id"],
)
def test_two_metadata_answers_must_agree(
    view_of: Callable[[ScriptedAdmin], TopicBounds], second: Any
) -> None:
    """Fewer: one broker's short answer; more: partitions were added; another id: re-created."""
    identity, found = view_of(ScriptedAdmin([second, WHOLE])).bounds("orders")
    assert (identity.topic_id, found) == (ID, EVERYWHERE)
    identity, found = view_of(ScriptedAdmin([WHOLE, second, second])).bounds("orders")
    assert identity.partition_count == len(second.partitions)
    assert identity.topic_id == second.topic_id


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (described([]), "lists partitions none only"),
        (described([*range(5), *range(6, 20)]), "0, 1, 2, 3, 4, 6, 7, 8, 9, 10 and 9 more only"),
        (described(range(3), leader=None), "'orders' has no leader for partitions 0, 1, 2"),
        (failed(KafkaError._ALL_BROKERS_DOWN), "metadata of topic 'orders'"),
    ],
)
def test_an_answer_that_stays_short_is_no_answer(
    view_of: Callable[[ScriptedAdmin], TopicBounds], metadata: Any, words: str
) -> None:
    with pytest.raises(BrokerUnavailable, match="Kafka at one:9092 did not answer") as caught:
        view_of(ScriptedAdmin([metadata])).bounds("orders")
    assert words in str(caught.value)


def test_answers_that_never_agree_are_no_answer(
    view_of: Callable[[ScriptedAdmin], TopicBounds],
) -> None:
    swinging = [described(range(3 if n % 2 else 2)) for n in range(100)]
    with pytest.raises(BrokerUnavailable, match="two metadata answers differ"):
        view_of(ScriptedAdmin(swinging)).bounds("orders")


@pytest.mark.parametrize(
    "first",
    [
        failed(KafkaError.NOT_LEADER_FOR_PARTITION),
        failed(KafkaError.OFFSET_NOT_AVAILABLE),
        (7, 5, 6),
        (0, 9, 8),
    ],
    ids=["not leader", "not available", "start above end", "stable above end"],
)
def test_bounds_out_of_order_are_asked_again(
    view_of: Callable[[ScriptedAdmin], TopicBounds], first: Any
) -> None:
    _, found = view_of(ScriptedAdmin([WHOLE], bounds=[first, (0, 5, 9)])).bounds("orders")
    assert found == EVERYWHERE


def test_bounds_of_two_leaders_are_asked_again(
    view_of: Callable[[ScriptedAdmin], TopicBounds],
) -> None:
    _, found = view_of(ScriptedAdmin([WHOLE], epochs=[3, 4, 4])).bounds("orders")
    assert found == {each: PartitionBounds(0, 9, 5, 4) for each in range(3)}


def test_a_stable_offset_below_the_log_start_is_lifted_to_it(
    view_of: Callable[[ScriptedAdmin], TopicBounds],
) -> None:
    _, found = view_of(ScriptedAdmin([WHOLE], bounds=[(3, 0, 5)])).bounds("orders")
    assert found[0] == PartitionBounds(3, 5, 3, 0)


def test_a_missing_topic_is_unknown(view_of: Callable[[ScriptedAdmin], TopicBounds]) -> None:
    with pytest.raises(TopicUnknown):
        view_of(ScriptedAdmin([failed(KafkaError.UNKNOWN_TOPIC_OR_PART)])).bounds("orders")


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError._AUTHENTICATION,
        KafkaError._UNSUPPORTED_FEATURE,
    ],
)
def test_a_refusal_is_final(view_of: Callable[[ScriptedAdmin], TopicBounds], code: int) -> None:
    admin = ScriptedAdmin([failed(code), WHOLE])
    with pytest.raises(SourceRefused, match="Kafka refused metadata of topic 'orders'"):
        view_of(admin).bounds("orders")
    assert admin.asked_metadata == 1
