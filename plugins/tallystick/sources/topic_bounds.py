"""Identity, bounds and policy of whole topics: one question per leader, however many partitions.

Says what the brokers say, or that they can't say it; never takes a short answer for a small topic.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from tallystick.domain.batches.states import Isolation
from tallystick.domain.logs.snapshot import PartitionBounds
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.errors import PartitionsLeaderless
from tallystick.sources.broker_answers import (
    NO_ERROR,
    NOT_ALLOWED,
    OFFSET_NOT_AVAILABLE,
    PATIENCE_SECONDS,
    AskAgain,
    SecondsLeft,
    patiently,
)
from tallystick.sources.leader_connections import Leader, LeaderConnections, TopicMetadata

LEVELS: Final[Mapping[Isolation, int]] = {
    Isolation.READ_UNCOMMITTED: 0,
    Isolation.READ_COMMITTED: 1,
}
NO_REPLICA: Final = -1
_LATEST: Final = -1
_EARLIEST: Final = -2
_NEWEST: Final = -3
_Led = Mapping[int, Mapping[int, int]]
"""By broker: the partitions that it leads, with the epochs of its leaderships."""
_TOPIC_RESOURCE: Final = 2
_BROKER_RESOURCE: Final = 4
_POLICY: Final = ("cleanup.policy", "retention.ms", "retention.bytes")
_LONGEST_TRANSACTION: Final = "transaction.max.timeout.ms"

# For the partitions that do have leaders, once some have none.
_SECOND_PATIENCE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class TopicPolicy:
    """The topic's configuration says this about losing records on purpose."""

    is_compacted: bool
    retention_ms: int | None
    retention_bytes: int | None = None


class TopicBounds:
    """Questions about whole topics."""

    def __init__(
        self, connections: LeaderConnections, *, patience_seconds: float = PATIENCE_SECONDS
    ) -> None:
        self._connections = connections
        self._patience_seconds = patience_seconds

    def bounds(self, topic: str) -> tuple[TopicMetadata, Mapping[int, PartitionBounds]]:
        """The topic's identity and every partition's bounds, all of one life of the topic.

        A partition whose leader can't tell for as long as our patience lasts, or that has none, is
        left out; the identity lists it all the same. Raises BrokerUnavailable when that would be
        all of them.
        """
        try:
            return patiently(lambda left: self._bounds(topic, left), seconds=self._patience_seconds)
        except PartitionsLeaderless:
            return patiently(
                lambda left: self._bounds(topic, left, all_led=False),
                seconds=min(_SECOND_PATIENCE_SECONDS, self._patience_seconds),
            )

    def identity(self, topic: str) -> str:
        """The topic's identity, as one broker tells it."""
        described = self._connections.described
        return patiently(
            lambda left: described(topic, left).topic_id, seconds=self._patience_seconds
        )

    def names(self) -> Collection[str]:
        """The names of all topics that our user may describe."""
        return patiently(self._names, seconds=self._patience_seconds)

    def policy(self, topic: str) -> TopicPolicy:
        """The topic's cleanup policy and retention as they are now."""
        return patiently(lambda left: self._policy(topic, left), seconds=self._patience_seconds)

    def longest_transaction(self) -> timedelta | None:
        """The broker's bound on a transaction's time-out; None where the user may not ask."""
        return patiently(self._longest_transaction, seconds=self._patience_seconds)

    def offsets_at(
        self, topic: str, timestamp_ms: int, partitions: Collection[int]
    ) -> Mapping[int, int | None]:
        """First offset with a timestamp at or after this one; None where there is none."""
        found = self._listed_of(topic, partitions, timestamp_ms)
        return {each: at.offset if at.offset >= 0 else None for each, at in found.items()}

    def newest_times(self, topic: str, partitions: Collection[int]) -> Mapping[int, int]:
        """Largest timestamp in each log's segments, in ms; -1 in an empty log.

        Deleted records count until their segment is gone. A broker older than 3.0 gives the time of
        the first record instead.
        """
        listed = self._listed_of(topic, partitions, _NEWEST)
        return {partition: each.timestamp for partition, each in listed.items()}

    def log_start_offset(self, partition: TopicPartition) -> int:
        """First offset that the leader still has (included)."""
        number = partition.partition
        return self.log_start_offsets(partition.topic, (number,))[number]

    def log_start_offsets(self, topic: str, partitions: Collection[int]) -> Mapping[int, int]:
        """First offset that each leader still has (included), in one request a broker."""
        return _offsets(self._listed_of(topic, partitions, _EARLIEST))

    def _listed_of(
        self, topic: str, partitions: Collection[int], timestamp: int
    ) -> Mapping[int, Any]:
        """Returns what the partitions' leaders answer to ListOffsets, as far as they know now."""

        def question(left: SecondsLeft) -> Mapping[int, Any]:
            leaders = {each: self._connections.leader(topic, each, left) for each in partitions}
            led = _by_node(leaders)
            return self._listed(topic, led, timestamp, Isolation.READ_UNCOMMITTED, left)

        return patiently(question, seconds=self._patience_seconds)

    def _bounds(
        self, topic: str, left: SecondsLeft, *, all_led: bool = True
    ) -> tuple[TopicMetadata, Mapping[int, PartitionBounds]]:
        """One try: metadata, log start, last stable offset, high watermark, metadata again.

        The two metadata answers must agree, and come from two brokers where there are two: so
        neither a broker that lags behind nor a topic that is made anew meanwhile is believed.

        All three offsets come from one leadership term, because each request names its epoch. In
        one term each of them only grows. Asked in this order, what is reported as the start was the
        start, all below the reported ends was readable, and the start never passes the high
        watermark, however the log moves in between. With the start asked last, retention in between
        could report a start above the end.

        A stable offset below the log start is real: records of an open transaction were purged.
        Nothing below the start is to be seen, so the start is taken; a stable offset that falls
        behind a frontier would look like a truncated log.

        The latest offset under read_uncommitted is the high watermark, not the leader's log end:
        the log end is for replicas alone (Partition.fetchOffsetForTimestamp in the broker).
        """
        before = self._whole(self._connections.described(topic, left), topic, all_led)
        committed, uncommitted = Isolation.READ_COMMITTED, Isolation.READ_UNCOMMITTED
        led = _by_node(before.leaders)
        start = _offsets(self._listed(topic, led, _EARLIEST, uncommitted, left))
        stable = _offsets(self._listed(topic, led, _LATEST, committed, left, all_tell=all_led))
        high = _offsets(self._listed(topic, led, _LATEST, uncommitted, left, all_tell=all_led))
        again = self._connections.described(topic, left, rather_not_by=before.told_by)
        after = self._whole(again, topic, all_led)
        if (before.topic_id, before.partitions) != (after.topic_id, after.partitions):
            raise self._connections.again(
                f"{before.told_by} and {after.told_by} differ about topic {topic!r}:"
                f" {len(before.partitions)} and {len(after.partitions)} partitions,"
                f" ids {before.topic_id} and {after.topic_id}"
            )
        found: dict[int, PartitionBounds] = {}
        for each in sorted(stable.keys() & high.keys()):
            first, until, epoch = start[each], high[each], before.leaders[each].epoch
            bounds = PartitionBounds(
                log_start_offset=first,
                high_watermark=until,
                last_stable_offset=max(first, stable[each]),
                leader_epoch=epoch if epoch >= 0 else None,
            )
            if bounds.last_stable_offset > until:
                raise self._connections.again(f"the bounds of {topic}-{each} are out of order")
            found[each] = bounds
        if not found:
            raise self._connections.again(f"no leader of {topic!r} can tell how far it may be read")
        return after, found

    def _whole(self, metadata: TopicMetadata, topic: str, all_led: bool) -> TopicMetadata:
        """The metadata, if it lists partitions 0 to n-1, each with a leader, or at least one with
        a leader where not all have to have one; AskAgain otherwise.
        """
        ids = metadata.partitions
        if not ids or ids != tuple(range(len(ids))):
            raise self._connections.again(
                f"{metadata.told_by} lists partitions {_some(ids)} of topic {topic!r} only"
            )
        leaderless = [each for each in ids if each not in metadata.leaders]
        reason = f"{topic!r} has no leader for {_some(leaderless)}"
        if leaderless and not metadata.leaders:
            raise self._connections.again(reason)
        if leaderless and all_led:
            raise AskAgain(PartitionsLeaderless(self._connections.servers, reason))
        return metadata

    def _listed(
        self,
        topic: str,
        led: _Led,
        timestamp: int,
        isolation: Isolation,
        left: SecondsLeft,
        *,
        all_tell: bool = True,
    ) -> dict[int, Any]:
        """Returns what the partitions' leaders answer to ListOffsets, by partition.

        A new leader can't tell how far its log may be read before its replicas have caught up, for
        minutes where they are too few (KIP-207, KIP-966). It is left out unless all have to tell.
        """
        found: dict[int, Any] = {}
        behind: set[int] = set()
        for node_id, epochs in led.items():
            answer = self._connections.send(
                node_id, _list_offsets(topic, epochs, timestamp, isolation), left
            )
            for each in (part for answered in answer.topics for part in answered.partitions):
                if each.error_code == OFFSET_NOT_AVAILABLE:
                    behind.add(each.partition_index)
                    continue
                if each.error_code != NO_ERROR:
                    asked = f"offsets of {topic}-{each.partition_index}"
                    self._connections.check(each.error_code, topic, asked)
                found[each.partition_index] = each
        if behind and all_tell:
            reason = f"the new leaders of {_some(sorted(behind))} of {topic!r} have not caught up"
            raise AskAgain(PartitionsLeaderless(self._connections.servers, reason))
        missing = {each for epochs in led.values() for each in epochs} - behind - found.keys()
        if missing:
            reason = f"no offsets came for {_some(sorted(missing))} of {topic!r}"
            raise self._connections.again(reason)
        return found

    def _names(self, left: SecondsLeft) -> Collection[str]:
        request = MetadataRequest(
            min_version=1, max_version=9, topics=None, allow_auto_topic_creation=False
        )
        answer = self._connections.send(self._connections.any_node(), request, left)
        # A cluster without a broker that it knows is one that has not begun.
        if not answer.brokers:
            raise self._connections.again("it knows no broker yet")
        return {each.name for each in answer.topics}

    def _policy(self, topic: str, left: SecondsLeft) -> TopicPolicy:
        request = _configs_of(_TOPIC_RESOURCE, topic, *_POLICY)
        (answer,) = self._connections.send(self._connections.any_node(), request, left).results
        asked = f"configuration of topic {topic!r}"
        self._connections.check(answer.error_code, topic, asked, right="DescribeConfigs")
        values = {each.name: each.value for each in answer.configs}
        policies = {each.strip() for each in values["cleanup.policy"].split(",")}
        is_deleted = "delete" in policies
        return TopicPolicy(
            is_compacted="compact" in policies,
            retention_ms=_limit(values["retention.ms"]) if is_deleted else None,
            retention_bytes=_limit(values.get("retention.bytes", "-1")) if is_deleted else None,
        )

    def _longest_transaction(self, left: SecondsLeft) -> timedelta | None:
        node_id = self._connections.known_node(left)
        request = _configs_of(_BROKER_RESOURCE, str(node_id), _LONGEST_TRANSACTION)
        (answer,) = self._connections.send(node_id, request, left).results
        if answer.error_code in NOT_ALLOWED:
            return None
        self._connections.check(answer.error_code, "", f"configuration of broker {node_id}")
        values = {each.name: each.value for each in answer.configs}
        found = values.get(_LONGEST_TRANSACTION)
        return timedelta(milliseconds=int(found)) if found else None


def _offsets(listed: Mapping[int, Any]) -> dict[int, int]:
    """One offset of each partition; -1 where a timestamp finds none."""
    return {partition: each.offset for partition, each in listed.items()}


def _by_node(leaders: Mapping[int, Leader]) -> _Led:
    found: dict[int, dict[int, int]] = {}
    for partition, (node_id, epoch) in leaders.items():
        found.setdefault(node_id, {})[partition] = epoch
    return found


def _list_offsets(
    topic: str, epochs: Mapping[int, int], timestamp: int, isolation: Isolation
) -> ListOffsetsRequest:
    """The question for the offset at one timestamp, or sentinel, of one broker's partitions."""
    asked = ListOffsetsRequest.ListOffsetsTopic
    partitions = [
        asked.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=epoch, timestamp=timestamp
        )
        for partition, epoch in epochs.items()
    ]
    return ListOffsetsRequest(
        min_version=6,
        max_version=7,
        replica_id=NO_REPLICA,
        isolation_level=LEVELS[isolation],
        topics=[asked(name=topic, partitions=partitions)],
    )


def _configs_of(kind: int, name: str, *keys: str) -> DescribeConfigsRequest:
    """The question for some settings of a topic or of a broker."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys)
    )
    return DescribeConfigsRequest(
        max_version=4, resources=[resource], include_synonyms=False, include_documentation=False
    )


def _limit(value: str) -> int | None:
    """The limit; None for -1, Kafka's word for none."""
    return int(value) if int(value) >= 0 else None


def _some(partitions: Sequence[int], most: int = 10) -> str:
    """The first few, for a person."""
    shown = ", ".join(map(str, partitions[:most])) or "none"
    return f"{shown} and {len(partitions) - most} more" if len(partitions) > most else shown
