"""Partition leaders give record batches with aborted transactions, and epoch ends.

Each request names the leader epoch that metadata gave, so a broker that only believes to lead is
found out. A leader that moved is looked up again, within bounds. Nothing here joins a group, keeps
a position, or makes a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from kafka.protocol.consumer import FetchRequest, OffsetForLeaderEpochRequest

from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.sources.broker_answers import (
    OFFSET_OUT_OF_RANGE,
    PATIENCE_SECONDS,
    SecondsLeft,
    patiently,
)
from tallystick.sources.hole_walk import AbortedTransaction, FetchAnswer
from tallystick.sources.leader_connections import Leader, LeaderConnections
from tallystick.sources.topic_bounds import LEVELS, NO_REPLICA

T = TypeVar("T")

_ANY_BYTES: Final = 2**31 - 1
# From 11 on a leader may send us to a replica, with an answer that looks empty.
_FETCH_VERSION: Final = 10
# An empty answer below the readable end is believed when it comes this many times.
_EMPTY_ANSWERS: Final = 3


class Place(NamedTuple):
    """A fetch begins here in one partition, and brings so much at most."""

    partition: int
    offset: int
    max_bytes: int


class LeaderReads:
    """Questions to the leaders of single partitions."""

    def __init__(
        self, connections: LeaderConnections, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._connections = connections
        self._patience_seconds = patience_seconds

    def fetch(
        self, partition: TopicPartition, offset: int, isolation: Isolation, *, max_bytes: int
    ) -> FetchAnswer | None:
        """Batches from the one that holds the offset, at least one; None out of the log's range.

        Empty records mean that no batch lies between the offset and the answer's readable end.
        """
        empty_answers = 0
        place = Place(partition.partition, offset, max_bytes)

        def question(left: SecondsLeft) -> FetchAnswer | None:
            nonlocal empty_answers
            leader = self._connections.leader(partition.topic, partition.partition, left)
            found = self._fetched(partition.topic, leader.node_id, {place: leader}, isolation, left)
            if partition.partition not in found:  # a broker over its quota leaves everything out
                raise self._connections.again(f"the answer leaves {partition} out")
            answer = found[partition.partition]
            if answer and not answer.records and offset < answer.readable_until:
                empty_answers += 1
                if empty_answers < _EMPTY_ANSWERS:
                    raise self._connections.again(f"{partition} gave no records at {offset}")
            return answer

        return self._patiently(question)

    def by_leader(self, topic: str, places: Iterable[Place]) -> list[Place]:
        """The places in an order in which those of one leader come together."""

        def question(left: SecondsLeft) -> list[Place]:
            leaders = self._connections.leaders(topic, left)
            nodes = {partition: leader.node_id for partition, leader in leaders.items()}
            return sorted(places, key=lambda each: nodes.get(each.partition, NO_REPLICA))

        return self._patiently(question)

    def fetch_some(self, topic: str, places: Iterable[Place]) -> Mapping[int, FetchAnswer | None]:
        """Answers for partitions of the first place's leader; the others are absent.

        Uncommitted records too. As in `fetch`, None is out of range; but here a batch may be cut
        off, because the broker sends at least one whole batch for one partition only.
        """
        wanted = list(places)

        def question(left: SecondsLeft) -> Mapping[int, FetchAnswer | None]:
            leaders = self._connections.leaders(topic, left)
            first = self._connections.leader(topic, wanted[0].partition, left)
            led = {each: leaders[each.partition] for each in wanted if each.partition in leaders}
            asked = {
                each: leader for each, leader in led.items() if leader.node_id == first.node_id
            }
            found = self._fetched(topic, first.node_id, asked, Isolation.READ_UNCOMMITTED, left)
            if not found:
                raise self._connections.again(f"the answer leaves all of {topic!r} out")
            return found

        return self._patiently(question)

    def epoch_ends(self, topic: str, epochs: Mapping[int, int]) -> Mapping[int, int]:
        """End (excluded) of each leader's largest epoch up to this one, in one request a broker.

        A partition whose leader knows no such epoch is absent.
        """
        if not epochs:
            return {}
        asked = OffsetForLeaderEpochRequest.OffsetForLeaderTopic

        def question(left: SecondsLeft) -> Mapping[int, int]:
            by_node: dict[int, list[Any]] = {}
            for partition, epoch in epochs.items():
                leader = self._connections.leader(topic, partition, left)
                by_node.setdefault(leader.node_id, []).append(
                    asked.OffsetForLeaderPartition(
                        partition=partition,
                        current_leader_epoch=leader.epoch,
                        leader_epoch=epoch,
                    )
                )
            found: dict[int, int] = {}
            for node_id, partitions in by_node.items():
                request = OffsetForLeaderEpochRequest(
                    max_version=4,
                    replica_id=NO_REPLICA,
                    topics=[asked(topic=topic, partitions=partitions)],
                )
                answer = self._connections.send(node_id, request, left)
                for each in (part for answered in answer.topics for part in answered.partitions):
                    place = f"{topic}-{each.partition}"
                    self._connections.check(each.error_code, topic, f"epoch ends of {place}")
                    found[each.partition] = int(each.end_offset)
            if found.keys() != epochs.keys():
                raise self._connections.again(f"the answer leaves partitions of {topic!r} out")
            return {partition: end for partition, end in found.items() if end >= 0}

        return self._patiently(question)

    def _fetched(
        self,
        topic: str,
        node_id: int,
        places: Mapping[Place, Leader],
        isolation: Isolation,
        left: SecondsLeft,
    ) -> dict[int, FetchAnswer | None]:
        """The answers of one request to one broker, by partition; raises for the first error."""
        asked = FetchRequest.FetchTopic
        partitions = [
            asked.FetchPartition(
                partition=each.partition,
                current_leader_epoch=leader.epoch,
                fetch_offset=each.offset,
                log_start_offset=-1,
                partition_max_bytes=each.max_bytes,
            )
            for each, leader in places.items()
        ]
        request = FetchRequest(
            min_version=_FETCH_VERSION,
            max_version=_FETCH_VERSION,
            replica_id=NO_REPLICA,
            max_wait_ms=0,
            min_bytes=0,
            # Bounded by partition: a bound here would starve those behind one oversized batch.
            max_bytes=_ANY_BYTES,
            isolation_level=LEVELS[isolation],
            session_id=0,
            session_epoch=-1,
            topics=[asked(topic=topic, partitions=partitions)],
            forgotten_topics_data=[],
        )
        answer = self._connections.send(node_id, request, left)
        self._connections.check(answer.error_code, topic, f"fetch from {topic!r}")
        found: dict[int, FetchAnswer | None] = {}
        for each in (part for answered in answer.responses for part in answered.partitions):
            if each.error_code == OFFSET_OUT_OF_RANGE:
                found[each.partition_index] = None
                continue
            place = f"{topic}-{each.partition_index}"
            self._connections.check(each.error_code, topic, f"fetch from {place}")
            found[each.partition_index] = _answer(each, isolation)
        return found

    def _patiently(self, question: Callable[[SecondsLeft], T]) -> T:
        return patiently(question, seconds=self._patience_seconds)


def _answer(part: Any, isolation: Isolation) -> FetchAnswer:
    is_committed = isolation is Isolation.READ_COMMITTED
    return FetchAnswer(
        records=part.records or b"",
        aborted=[
            AbortedTransaction(each.producer_id, each.first_offset)
            for each in part.aborted_transactions or ()
        ],
        readable_until=part.last_stable_offset if is_committed else part.high_watermark,
    )
