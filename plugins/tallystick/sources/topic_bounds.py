"""Identity and bounds of whole topics, by librdkafka's admin client: bulk questions to all leaders.

Says what the brokers say, or that they can't say it; never takes a short answer for a small topic.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as NamedPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

from tallystick.domain.snapshot import PartitionBounds
from tallystick.errors import BrokerUnavailable, SourceRefused
from tallystick.sources.broker_answers import (
    PATIENCE_SECONDS,
    AskAgain,
    SecondsLeft,
    patiently,
    raise_for_code,
)
from tallystick.sources.client_properties import ClientProperties

T = TypeVar("T")

# librdkafka would write to standard error; its lines go here instead.
_chatter = logging.getLogger("tallystick.sources.librdkafka")
_chatter.addHandler(logging.NullHandler())

_POLL_SECONDS: Final = 0.25
_QUIET: Final[Mapping[str, object]] = {
    "socket.connection.setup.timeout.ms": 5000,
    "reconnect.backoff.max.ms": 1000,
    "log.connection.close": False,
}
_REFUSED: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._UNSUPPORTED_FEATURE})


@dataclass(frozen=True, slots=True)
class TopicIdentity:
    """What one metadata answer says of a topic whose partitions all have a leader."""

    topic_id: str
    partition_count: int


@dataclass(frozen=True, slots=True)
class TopicPolicy:
    """What the topic's configuration says about losing records on purpose."""

    is_compacted: bool
    retention_ms: int | None


@dataclass(frozen=True, slots=True)
class _Offset:
    offset: int
    leader_epoch: int | None


class TopicBounds:
    """Questions about topics over one admin client, opened at the first question."""

    def __init__(
        self, properties: ClientProperties, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._properties = properties
        self._patience_seconds = patience_seconds
        self._client: AdminClient | None = None
        self._complaint: KafkaError | None = None
        self._last_words = ""

    def close(self) -> None:
        """Let go of the client; a later question opens a new one."""
        self._client = None

    def cluster_id(self) -> str:
        """The cluster's own id."""
        return self._patiently(self._cluster_id)

    def policy(self, topic: str) -> TopicPolicy:
        """The topic's cleanup policy and retention as they are now."""
        return self._patiently(lambda left: self._policy(topic, left))

    def bounds(self, topic: str) -> tuple[TopicIdentity, Mapping[int, PartitionBounds]]:
        """The topic's identity and every partition's bounds, all of one life of the topic.

        Two metadata answers enclose the offsets and must agree; see `_bounds` for the order.
        """
        return self._patiently(lambda left: self._bounds(topic, left))

    def offsets_at(
        self, topic: str, timestamp_ms: int, partitions: Collection[int]
    ) -> Mapping[int, int | None]:
        """First offset with a timestamp at or after this one; None where there is none."""
        spec = OffsetSpec.for_timestamp(timestamp_ms)
        uncommitted = IsolationLevel.READ_UNCOMMITTED

        def question(left: SecondsLeft) -> Mapping[int, _Offset]:
            self._identity(topic, left)  # tells a missing topic from one without leaders
            return self._offsets(topic, partitions, spec, uncommitted, left)

        found = self._patiently(question)
        return {each: None if at.offset < 0 else at.offset for each, at in found.items()}

    def _bounds(
        self, topic: str, left: SecondsLeft
    ) -> tuple[TopicIdentity, Mapping[int, PartitionBounds]]:
        """One try: start of the log first, then the last stable offset, then the high watermark.

        Each of the three only grows while the leader stays. Asked in this order, what is reported
        as the start was the start, all below the reported ends was readable, and start and stable
        offset never pass the high watermark, however the log moves in between. With the start asked
        last, retention in between could report a start above the end. A new leader can turn the
        order; then the epochs differ or the offsets do, and all is asked again.

        A stable offset below the log start is real: records of an open transaction were purged.
        Nothing below the start is to be seen, so the start is taken; a stable offset that falls
        behind a frontier would look like a truncated log.

        The latest offset under read_uncommitted is the high watermark, not the leader's log end:
        the log end is for replicas alone (Partition.fetchOffsetForTimestamp in the broker).
        """
        before = self._identity(topic, left)
        asked = range(before.partition_count)
        latest, committed = OffsetSpec.latest(), IsolationLevel.READ_COMMITTED
        uncommitted = IsolationLevel.READ_UNCOMMITTED
        start = self._offsets(topic, asked, OffsetSpec.earliest(), uncommitted, left)
        stable = self._offsets(topic, asked, latest, committed, left)
        high = self._offsets(topic, asked, latest, uncommitted, left)
        after = self._identity(topic, left)
        if before != after:
            raise self._again(f"two metadata answers differ for {topic!r}: {before}, then {after}")
        found: dict[int, PartitionBounds] = {}
        for each in asked:
            is_ordered = max(start[each].offset, stable[each].offset) <= high[each].offset
            if not is_ordered or stable[each].leader_epoch != high[each].leader_epoch:
                raise self._again(f"the leader of {topic}-{each} changed while it was asked")
            found[each] = PartitionBounds(
                log_start_offset=start[each].offset,
                high_watermark=high[each].offset,
                last_stable_offset=max(start[each].offset, stable[each].offset),
                leader_epoch=high[each].leader_epoch,
            )
        return after, found

    def _identity(self, topic: str, left: SecondsLeft) -> TopicIdentity:
        asked = f"metadata of topic {topic!r}"
        futures = self._opened().describe_topics(TopicCollection([topic]), request_timeout=left())
        described = self._answers(futures, topic, asked)[topic]
        ids = sorted(each.id for each in described.partitions)
        leaderless = sorted(each.id for each in described.partitions if not _has_leader(each))
        if not ids or ids != list(range(len(ids))):
            raise self._again(f"{asked} lists partitions {_some(ids)} only")
        if leaderless:
            raise self._again(f"{topic!r} has no leader for partitions {_some(leaderless)}")
        # librdkafka writes plain base 64; Kafka's own tools and logs write the URL-safe kind.
        topic_id = str(described.topic_id).replace("+", "-").replace("/", "_")
        return TopicIdentity(topic_id, len(ids))

    def _offsets(
        self,
        topic: str,
        partitions: Iterable[int],
        spec: OffsetSpec,
        isolation: IsolationLevel,
        left: SecondsLeft,
    ) -> dict[int, _Offset]:
        wanted = {NamedPartition(topic, each): spec for each in partitions}
        if not wanted:
            return {}
        futures = self._opened().list_offsets(
            wanted, isolation_level=isolation, request_timeout=left()
        )
        found = self._answers(futures, topic, f"offsets of topic {topic!r}")
        return {key.partition: _Offset(at.offset, at.leader_epoch) for key, at in found.items()}

    def _policy(self, topic: str, left: SecondsLeft) -> TopicPolicy:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        futures = self._opened().describe_configs([resource], request_timeout=left())
        found = self._answers(futures, topic, f"configuration of topic {topic!r}")
        entries = found[resource]
        policies = {each.strip() for each in entries["cleanup.policy"].value.split(",")}
        retention_ms = int(entries["retention.ms"].value)
        return TopicPolicy(
            is_compacted="compact" in policies,
            retention_ms=retention_ms if retention_ms >= 0 and "delete" in policies else None,
        )

    def _cluster_id(self, left: SecondsLeft) -> str:
        future = self._opened().describe_cluster(request_timeout=left())
        found = self._answers({"cluster": future}, "", "the cluster's id")["cluster"]
        if not found.cluster_id:
            raise self._again("the answer has no cluster id")
        return str(found.cluster_id)

    def _answers(
        self, futures: Mapping[Any, Future[Any]], topic: str, asked: str
    ) -> dict[Any, Any]:
        """All results, or the first failure as ours. Serves the client's callbacks meanwhile."""
        pending, client = set(futures.values()), self._opened()
        while pending:
            pending = wait(pending, timeout=_POLL_SECONDS).not_done
            client.poll(0)
            if self._complaint is not None and pending:
                raise SourceRefused(asked, self._complaint.str())
        found: dict[Any, Any] = {}
        for key, future in futures.items():
            try:
                found[key] = future.result()
            except KafkaException as failure:
                self._translate(failure, topic, asked)
        return found

    def _translate(self, failure: KafkaException, topic: str, asked: str) -> None:
        """Raise ours; librdkafka's own codes are below zero."""
        error = failure.args[0]
        code, text = error.code(), error.str()
        servers = self._properties.servers
        try:
            if _is_refusal(error):
                raise SourceRefused(asked, text) from failure
            if code < 0:
                raise self._again(f"{asked}: {text}{self._last_words}")
            raise_for_code(code, text, topic=topic, servers=servers, asked=asked)
        except AskAgain as again:
            raise again from failure

    def _again(self, reason: str) -> AskAgain:
        return AskAgain(BrokerUnavailable(self._properties.servers, reason))

    def _patiently(self, question: Callable[[SecondsLeft], T]) -> T:
        return patiently(question, seconds=self._patience_seconds)

    def _opened(self) -> AdminClient:
        if self._client is None:
            self._complaint, self._last_words = None, ""
            settings = {**_QUIET, **self._properties.librdkafka, "error_cb": self._heard}
            try:
                self._client = AdminClient(settings, logger=_chatter)
            except KafkaException as failure:
                text = failure.args[0].str()
                raise SourceRefused("the connection's properties", text) from failure
        return self._client

    def _heard(self, error: KafkaError) -> None:
        """Called by librdkafka, with what no request would report before its time-out."""
        if _is_refusal(error):
            self._complaint = error
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._last_words = f" ({error.str()})"


def _is_refusal(error: KafkaError) -> bool:
    """True where asking again can't help. A handshake may also break off because a broker stops."""
    is_distrust = error.code() == KafkaError._SSL and "certificate" in error.str()
    return is_distrust or error.code() in _REFUSED


def _has_leader(partition: Any) -> bool:
    return partition.leader is not None and partition.leader.id >= 0


def _some(partitions: Sequence[int], most: int = 10) -> str:
    """The first few, for a person."""
    shown = ", ".join(map(str, partitions[:most])) or "none"
    return f"{shown} and {len(partitions) - most} more" if len(partitions) > most else shown
