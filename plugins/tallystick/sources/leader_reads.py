"""Raw reads from a partition's leader by kafka-python's protocol layer: batches, aborts, epochs.

Each request names the leader epoch that its metadata gave, so a broker that only believes to lead
is found out. A leader that moved is looked up again, within bounds. Nothing here joins a group,
keeps a position, or makes a topic.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka import errors as kafka_errors
from kafka.net.compat import KafkaNetClient
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import MetadataRequest

from tallystick.domain.ranges import TopicPartition
from tallystick.domain.states import Isolation
from tallystick.errors import BrokerUnavailable, SourceRefused
from tallystick.sources.broker_answers import (
    NO_ERROR,
    OFFSET_OUT_OF_RANGE,
    PATIENCE_SECONDS,
    AskAgain,
    SecondsLeft,
    patiently,
    raise_for_code,
)
from tallystick.sources.client_properties import ClientProperties
from tallystick.sources.hole_walk import AbortedTransaction, FetchAnswer

# A fetch answer may be as large as one batch of any size; the protocol's own bound is 2 GB.
_LARGEST_ANSWER_BYTES: Final = 2**31 - 1
_NO_REPLICA: Final = -1
_EARLIEST: Final = -2
_LEVELS: Final[Mapping[Isolation, int]] = {
    Isolation.READ_UNCOMMITTED: 0,
    Isolation.READ_COMMITTED: 1,
}
# An empty answer below the readable end is believed when it comes this many times.
_EMPTY_ANSWERS: Final = 3

_CONNECT_SECONDS: Final = 5
_REFUSALS: Final = (
    kafka_errors.AuthorizationError,
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.UnsupportedVersionError,
)

# At DEBUG these write every byte sent, passwords of SASL PLAIN among them.
_TALKATIVE: Final = ("kafka.net", "kafka.protocol")


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads a partition, and since which term."""

    node_id: int
    epoch: int


class LeaderReads:
    """Requests to leaders over one client, opened at the first request."""

    def __init__(
        self, properties: ClientProperties, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._properties = properties
        self._patience_seconds = patience_seconds
        self._client: Any = None
        self._leaders: dict[TopicPartition, Leader] = {}

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        self._leaders.clear()
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def fetch(
        self, partition: TopicPartition, offset: int, isolation: Isolation, *, max_bytes: int
    ) -> FetchAnswer | None:
        """Batches from the one that holds the offset, at least one; None out of the log's range.

        Empty records mean that no batch lies between the offset and the answer's readable end.
        """
        empty_answers = 0

        def question(left: SecondsLeft) -> FetchAnswer | None:
            nonlocal empty_answers
            answer = self._fetched(partition, offset, isolation, max_bytes, left)
            if answer and not answer.records and offset < answer.readable_until:
                empty_answers += 1
                if empty_answers < _EMPTY_ANSWERS:
                    reason = f"{partition} gave no records at {offset}"
                    raise AskAgain(BrokerUnavailable(self._properties.servers, reason))
            return answer

        return patiently(question, seconds=self._patience_seconds)

    def log_start_offset(self, partition: TopicPartition) -> int:
        """First offset that the leader still has (included)."""

        def question(left: SecondsLeft) -> int:
            leader = self._leader(partition, left)
            topic = ListOffsetsRequest.ListOffsetsTopic
            asked = topic.ListOffsetsPartition(
                partition_index=partition.partition,
                current_leader_epoch=leader.epoch,
                timestamp=_EARLIEST,
            )
            request = ListOffsetsRequest(
                max_version=7,
                replica_id=_NO_REPLICA,
                isolation_level=0,
                topics=[topic(name=partition.topic, partitions=[asked])],
            )
            answer = self._sent(leader.node_id, request, left)
            found = self._only(answer.topics, partition)
            self._check(found.error_code, partition, "first offset")
            return int(found.offset)

        return patiently(question, seconds=self._patience_seconds)

    def epoch_end(self, partition: TopicPartition, leader_epoch: int) -> int | None:
        """End (excluded) of the leader's largest epoch up to this one; None if it knows none."""

        def question(left: SecondsLeft) -> int | None:
            leader = self._leader(partition, left)
            topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
            asked = topic.OffsetForLeaderPartition(
                partition=partition.partition,
                current_leader_epoch=leader.epoch,
                leader_epoch=leader_epoch,
            )
            request = OffsetForLeaderEpochRequest(
                max_version=4,
                replica_id=_NO_REPLICA,
                topics=[topic(topic=partition.topic, partitions=[asked])],
            )
            answer = self._sent(leader.node_id, request, left)
            found = self._only(answer.topics, partition)
            self._check(found.error_code, partition, f"end of epoch {leader_epoch}")
            return int(found.end_offset) if found.end_offset >= 0 else None

        return patiently(question, seconds=self._patience_seconds)

    def _fetched(
        self,
        partition: TopicPartition,
        offset: int,
        isolation: Isolation,
        max_bytes: int,
        left: SecondsLeft,
    ) -> FetchAnswer | None:
        leader = self._leader(partition, left)
        topic = FetchRequest.FetchTopic
        asked = topic.FetchPartition(
            partition=partition.partition,
            fetch_offset=offset,
            partition_max_bytes=max_bytes,
            log_start_offset=-1,
            current_leader_epoch=leader.epoch,
        )
        request = FetchRequest(
            min_version=4,
            max_version=11,
            replica_id=_NO_REPLICA,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=max_bytes,
            isolation_level=_LEVELS[isolation],
            session_id=0,
            session_epoch=-1,
            forgotten_topics_data=[],
            rack_id="",
            topics=[topic(topic=partition.topic, partitions=[asked])],
        )
        answer = self._sent(leader.node_id, request, left)
        self._check(answer.error_code or NO_ERROR, partition, "fetch")
        found = self._only(answer.responses, partition)
        if found.error_code == OFFSET_OUT_OF_RANGE:
            return None
        self._check(found.error_code, partition, f"fetch at {offset}")
        is_committed = isolation is Isolation.READ_COMMITTED
        return FetchAnswer(
            records=found.records or b"",
            aborted=[
                AbortedTransaction(each.producer_id, each.first_offset)
                for each in (found.aborted_transactions or ())
            ],
            readable_until=found.last_stable_offset if is_committed else found.high_watermark,
        )

    def _leader(self, partition: TopicPartition, left: SecondsLeft) -> Leader:
        known = self._leaders.get(partition)
        if known is None:
            known = self._leaders[partition] = self._looked_up(partition, left)
        return known

    def _looked_up(self, partition: TopicPartition, left: SecondsLeft) -> Leader:
        topic = MetadataRequest.MetadataRequestTopic
        request = MetadataRequest(
            min_version=9,
            max_version=12,
            topics=[topic(name=partition.topic)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        client = self._opened()
        node_id = client.least_loaded_node(bootstrap_fallback=True)
        answer = self._sent(node_id, request, left)
        client.cluster.update_metadata(answer)  # makes the brokers' addresses known
        self._check(answer.topics[0].error_code, partition, "metadata")
        for each in answer.topics[0].partitions:
            if each.partition_index == partition.partition and each.leader_id >= 0:
                return Leader(each.leader_id, each.leader_epoch)
        raise AskAgain(BrokerUnavailable(self._properties.servers, f"{partition} has no leader"))

    def _sent(self, node_id: Any, request: Any, left: SecondsLeft) -> Any:
        """The answer; after a failed connection the next request opens a new client."""
        client, servers = self._opened(), self._properties.servers
        try:
            future = client.send(node_id, request)
            client.poll(timeout_ms=left() * 1000, future=future)
            if future.succeeded():
                return future.value
            raise future.exception or kafka_errors.KafkaTimeoutError("no answer in time")
        except _REFUSALS as failure:
            self.close()
            raise SourceRefused(f"the connection to {servers}", str(failure)) from failure
        except (kafka_errors.KafkaError, OSError) as failure:
            self.close()
            reason = str(failure) or type(failure).__name__
            raise AskAgain(BrokerUnavailable(servers, reason)) from failure

    def _opened(self) -> Any:
        if self._client is None:
            for name in _TALKATIVE:
                logging.getLogger(name).setLevel(logging.INFO)
            self._client = KafkaNetClient(
                **self._properties.kafka_python,
                receive_message_max_bytes=_LARGEST_ANSWER_BYTES,
                socket_connection_setup_timeout_ms=_CONNECT_SECONDS * 1000,
                request_timeout_ms=int(self._patience_seconds * 1000),
            )
        return self._client

    def _only(self, topics: Any, partition: TopicPartition) -> Any:
        """The one partition that was asked for; a broker over its quota answers with none."""
        for topic in topics:
            for found in topic.partitions:
                return found
        raise AskAgain(
            BrokerUnavailable(self._properties.servers, f"the answer leaves {partition} out")
        )

    def _check(self, code: int, partition: TopicPartition, asked: str) -> None:
        if code == NO_ERROR:
            return
        self._leaders.pop(partition, None)
        raise_for_code(
            code,
            kafka_errors.for_code(code).__name__,
            topic=partition.topic,
            servers=self._properties.servers,
            asked=f"{asked} of {partition}",
        )
