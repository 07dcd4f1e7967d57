"""BrokerView of a real cluster, by kafka-python's protocol layer.

Puts the parts together and decides one thing: that an offset without any header counts as compacted
only where the topic's policy says compact.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, Self

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.logs.snapshot import BatchHead, BrokerSnapshot, EpochEnd, RecordEvidence
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.errors import BrokerUnavailable
from tallystick.sources.batch_heads import BatchSearch
from tallystick.sources.broker_answers import PATIENCE_SECONDS
from tallystick.sources.client_properties import client_properties
from tallystick.sources.hole_walk import HoleWalk
from tallystick.sources.leader_connections import LeaderConnections
from tallystick.sources.leader_reads import LeaderReads
from tallystick.sources.record_batches import batches_in, read_at, records_in
from tallystick.sources.slice_weights import Weight, weights_of
from tallystick.sources.topic_bounds import TopicBounds

# A lone hole needs one small batch; a run of markers needs all that lies between them.
_SMALLEST_FETCH_BYTES: Final = 64 * 1024
_LARGEST_FETCH_BYTES: Final = 8 * 1024 * 1024
_GROWTH: Final = 4
# Well below the time for which the ledger lets a transaction stand idle (`session.sql`).
_LONGEST_SECONDS: Final = 300.0


class KafkaBrokerView:
    """One cluster, read only, for one thread; connections open at the first question."""

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        now: Callable[[], datetime],
        patience_seconds: float = PATIENCE_SECONDS,
        connection: str | None = None,
    ) -> None:
        """Properties bear librdkafka's names; raises ConfigurationError for one that can't be used.

        Errors name the connection. No question takes much longer than `patience_seconds` when the
        brokers are silent.
        """
        known = client_properties(properties, connection)
        self._servers = known.servers
        self._now = now
        self._connections = LeaderConnections(known, request_seconds=patience_seconds)
        self._topics = TopicBounds(self._connections, patience_seconds=patience_seconds)
        self._leaders = LeaderReads(self._connections, patience_seconds=patience_seconds)

    def __repr__(self) -> str:
        return f"KafkaBrokerView({self._servers!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a later question opens new ones."""
        self._connections.close()

    def snapshot(self, topic: str) -> BrokerSnapshot:
        """Identity and bounds of all partitions; `taken_at` is before the first question.

        What is in the snapshot was true at that instant or later: see TopicBounds for the order.
        """
        taken_at = self._now()
        identity, partitions = self._topics.bounds(topic)
        policy = self._topics.policy(topic)
        return BrokerSnapshot(
            cluster_id=identity.cluster_id,
            topic=topic,
            topic_id=identity.topic_id,
            taken_at=taken_at,
            partitions=partitions,
            leaderless=frozenset(identity.partitions) - partitions.keys(),
            is_compacted=policy.is_compacted,
            retention_ms=policy.retention_ms,
            retention_bytes=policy.retention_bytes,
        )

    def identity(self, topic: str) -> str:
        """The topic's identity alone."""
        return self._topics.identity(topic)

    def topics(self) -> Collection[str]:
        """The names of all topics."""
        return self._topics.names()

    def offsets_at(
        self, topic: str, instant: datetime, partitions: Collection[int]
    ) -> Mapping[int, int | None]:
        """First offset at or after the instant; Kafka's clock ticks milliseconds, so rounded up.

        A broker may say None of a log whose deleted records were as late: see `_first_offset_at`.
        """
        # Negative timestamps are sentinels in the protocol, and no record is older than 1970.
        timestamp_ms = max(0, math.ceil(instant.timestamp() * 1000))
        found = dict(self._topics.offsets_at(topic, timestamp_ms, partitions))
        missing = [each for each, offset in found.items() if offset is None]
        newest = self._topics.newest_times(topic, missing) if missing else {}
        for each, newest_ms in newest.items():
            if newest_ms >= timestamp_ms:
                found[each] = self._first_offset_at(TopicPartition(topic, each), timestamp_ms)
        return found

    def explain_holes(
        self,
        offsets: OffsetRange,
        holes: OffsetRuns,
        isolation: Isolation,
        *,
        cleaned: OffsetRange | None = None,
    ) -> Mapping[HoleClass, OffsetRuns]:
        """The holes that headers explain; those outside the range or below the log start are not.

        The log start is asked for after the walk: a batch that expired meanwhile was not compacted.
        """
        walk = HoleWalk(holes.clipped(offsets.from_offset, offsets.until_offset), isolation)
        self._walk(offsets.partition, walk)
        explained = walk.explained()
        bare = walk.bare()
        if bare and not self._topics.policy(offsets.partition.topic).is_compacted:
            earlier = (cleaned.from_offset, cleaned.until_offset) if cleaned else (0, 0)
            bare = bare.clipped(*earlier)
        if bare:
            known = explained.get(HoleClass.COMPACTED, OffsetRuns())
            explained[HoleClass.COMPACTED] = known.union(bare)
        if not explained:
            return {}
        start = self._topics.log_start_offset(offsets.partition)
        kept = {kind: runs.clipped(start, offsets.until_offset) for kind, runs in explained.items()}
        return {kind: runs for kind, runs in kept.items() if runs}

    def records_at(self, topic: str, offsets: Mapping[int, int]) -> Mapping[int, RecordEvidence]:
        """The records at exactly these offsets, aborted ones too: the content is what matters."""
        return BatchSearch(self._leaders, topic, offsets).records()

    def batch_heads(self, topic: str, offsets: Mapping[int, int]) -> Mapping[int, BatchHead]:
        """The headers at or after these offsets, of aborted and open transactions too."""
        return BatchSearch(self._leaders, topic, offsets).heads()

    def bytes_per_record(self, topic: str, offsets: Mapping[int, int]) -> Mapping[int, float]:
        """Estimates what a record takes, by the batches at or after these offsets."""
        return BatchSearch(self._leaders, topic, offsets).bytes_per_record()

    def weights(self, slices: Sequence[OffsetRange], most: int) -> Mapping[OffsetRange, Weight]:
        """Returns what each slice unpacks to, for who reads it by another library."""
        return weights_of(self._leaders, self._topics.log_start_offset, slices, most)

    def longest_transaction(self) -> timedelta | None:
        """Returns the longest that the brokers allow."""
        return self._topics.longest_transaction()

    def epoch_ends(self, topic: str, epochs: Mapping[int, int]) -> Mapping[int, EpochEnd]:
        """Returns where the leaders' logs leave these epochs: the largest epoch's end up to each.

        A log that was cut below the epoch's start so still says where it was cut. The log starts
        are asked for afterwards: a broker forgets epochs whose records have expired, and says then
        where its oldest one begins. Only a start that is no earlier can tell the two apart.
        """
        ends = self._leaders.epoch_ends(topic, epochs)
        starts = self._topics.log_start_offsets(topic, ends)
        return {each: EpochEnd(end, starts[each]) for each, end in ends.items()}

    def _first_offset_at(self, partition: TopicPartition, timestamp_ms: int) -> int | None:
        """The first offset with a timestamp at or after the instant, read in the log itself.

        A broker looks in the first segment that ever held a record as late, and in no other: where
        that record was deleted and its segment is still there, it answers that there is none
        (UnifiedLog.searchOffsetInLocalLog). Raises LogUnreadable for a batch that is damaged, and
        BrokerUnavailable for a log that is cut meanwhile, or too long to be read in time: the
        ledger's transaction waits for it.
        """
        deadline = time.monotonic() + _LONGEST_SECONDS
        position = self._topics.log_start_offset(partition)
        while True:
            if time.monotonic() > deadline:
                raise BrokerUnavailable(
                    self._servers,
                    f"its time index can't tell where records of {partition} are as late, and"
                    f" {_LONGEST_SECONDS:.0f} s of reading came to offset {position}",
                )
            answer = self._leaders.fetch(
                partition, position, Isolation.READ_UNCOMMITTED, max_bytes=_LARGEST_FETCH_BYTES
            )
            if answer is None:
                start = self._topics.log_start_offset(partition)
                if start <= position:
                    # An answer now would let a feed begin where the log ends.
                    raise BrokerUnavailable(
                        self._servers, f"{partition} was cut while its records were read"
                    )
                position = start
                continue
            if position >= answer.readable_until:
                return None
            with read_at(f"batches of {partition} at {position}"):
                found, following = _first_in(answer.records, position, timestamp_ms)
            if found is not None or following == position:
                return found
            position = following

    def _walk(self, partition: TopicPartition, walk: HoleWalk) -> None:
        """Fetch at each hole that no answer so far has covered."""
        max_bytes = _SMALLEST_FETCH_BYTES
        while (offset := walk.next_offset) is not None:
            answer = self._leaders.fetch(partition, offset, walk.isolation, max_bytes=max_bytes)
            if answer is None:
                start = self._topics.log_start_offset(partition)
                walk.pass_over(start if start > offset else walk.holes.until_offsets[-1])
                continue
            with read_at(f"batches of {partition} at {offset}"):
                settled = walk.take(answer)
            wanted = max_bytes * _GROWTH if settled > 1 else _SMALLEST_FETCH_BYTES
            max_bytes = min(wanted, _LARGEST_FETCH_BYTES)


def _first_in(
    records: bytes | memoryview, position: int, timestamp_ms: int
) -> tuple[int | None, int]:
    """The offset if these batches have it, and where the next ones begin."""
    following = position
    for batch in batches_in(records):
        if batch.max_timestamp >= timestamp_ms:
            for each in records_in(batch):
                if each.offset >= position and each.timestamp_ms >= timestamp_ms:
                    return each.offset, following
        following = max(following, batch.until_offset)
    return None, following
