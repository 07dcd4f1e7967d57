"""What is asked of Kafka. No method lets a client choose an offset, join a group, or commit one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Protocol

from tallystick.domain.ranges import OffsetRange, TopicPartition
from tallystick.domain.runs import OffsetRuns
from tallystick.domain.snapshot import BatchHead, BrokerSnapshot, RecordEvidence
from tallystick.domain.states import HoleClass, Isolation


class BrokerView(Protocol):
    """One cluster, read only.

    Every method raises BrokerUnavailable (retry), SourceRefused, or TopicUnknown.
    """

    def snapshot(self, topic: str) -> BrokerSnapshot:
        """Identity and bounds of all partitions, from their leaders.

        Metadata is asked twice, so no short answer is taken for a small topic. A partition that has
        no leader is listed as leaderless, once patience is over; so it is never taken for an empty
        one, and the others go on. Raises BrokerUnavailable when no partition has a leader.
        """
        ...

    def offsets_at(
        self, topic: str, instant: datetime, partitions: Collection[int]
    ) -> Mapping[int, int | None]:
        """First offset whose timestamp is at or after the instant; None where there is none."""
        ...

    def explain_holes(
        self, offsets: OffsetRange, holes: OffsetRuns, isolation: Isolation
    ) -> Mapping[HoleClass, OffsetRuns]:
        """The holes that record-batch headers explain, by class; the rest stays unexplained.

        COMPACTED without any header left is given only when the topic's policy contains compact.
        """
        ...

    def records_at(self, topic: str, offsets: Mapping[int, int]) -> Mapping[int, RecordEvidence]:
        """The record at exactly one offset of each partition, in few requests for many partitions.

        A partition is absent from the answer where that record is gone: expired, compacted, or the
        offset is a marker's.
        """
        ...

    def batch_heads(self, topic: str, offsets: Mapping[int, int]) -> Mapping[int, BatchHead]:
        """The header of the batch that holds this offset of each partition, or else the next one's.

        Uncommitted batches too, up to the high watermark. A partition is absent from the answer
        where the log holds no batch there, or does not begin before the offset any more.
        """
        ...

    def longest_transaction(self) -> timedelta | None:
        """How long a transaction may stay open on this cluster; None where the user may not ask."""
        ...

    def epoch_end(self, partition: TopicPartition, leader_epoch: int) -> int | None:
        """End (excluded) of the given leader epoch in the leader's log; None if it doesn't know."""
        ...
