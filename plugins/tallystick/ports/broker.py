"""What is asked of Kafka, and what it is told for tools that watch lag.

No question lets a client choose an offset, join a group, or commit one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.logs.snapshot import BatchHead, BrokerSnapshot, EpochEnd, RecordEvidence
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.second_read import SliceRead


class BrokerView(Protocol):
    """One cluster, read only.

    Every method raises BrokerUnavailable (retry), SourceRefused, or TopicUnknown.
    """

    def snapshot(self, topic: str) -> BrokerSnapshot:
        """Identity and bounds of all partitions, from their leaders.

        Metadata is asked twice, so no short answer is taken for a small topic. A partition that has
        no leader, or a new one that can't tell yet how far it may be read, is listed as leaderless,
        once patience is over; so it is never taken for an empty one, and the others go on. Raises
        BrokerUnavailable when that is so of every partition.
        """
        ...

    def identity(self, topic: str) -> str:
        """Its identity, as one broker tells it: no leader is asked, and no partition looked at."""
        ...

    def topics(self) -> Collection[str]:
        """The names of all topics that the user may describe, as one broker knows them now."""
        ...

    def offsets_at(
        self, topic: str, instant: datetime, partitions: Collection[int]
    ) -> Mapping[int, int | None]:
        """First offset whose timestamp is at or after the instant; None where there is none."""
        ...

    def explain_holes(
        self,
        offsets: OffsetRange,
        holes: OffsetRuns,
        isolation: Isolation,
        *,
        cleaned: OffsetRange | None = None,
    ) -> Mapping[HoleClass, OffsetRuns]:
        """The holes that record-batch headers explain, by class; the rest stays unexplained.

        COMPACTED without any header left is given only when the topic's policy contains compact, or
        where an earlier one that did may have `cleaned`.
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

    def bytes_per_record(self, topic: str, offsets: Mapping[int, int]) -> Mapping[int, float]:
        """What a record takes unpacked, by the first ones of the batch that `batch_heads` shows.

        A partition is absent from the answer where there is none.
        """
        ...

    def longest_transaction(self) -> timedelta | None:
        """How long a transaction may stay open on this cluster; None where the user may not ask."""
        ...

    def epoch_ends(self, topic: str, epochs: Mapping[int, int]) -> Mapping[int, EpochEnd]:
        """Where the log of each partition leaves a leader epoch, as its leader has it.

        Few requests for many partitions. A partition is absent from the answer where its leader
        knows no epoch up to this one. Raises BrokerUnavailable while one has no leader.
        """
        ...


class FrontierGroup(Protocol):
    """A group in which a feed's frontiers stand as committed offsets; they are never read back."""

    def show(self, feed: str, topic: str, frontiers: Mapping[int, int]) -> None:
        """Commit the frontiers, by partition; raises a SourceError where that can't be done.

        Raises SourceRefused, and changes nothing, for a group that somebody else seems to use.
        """
        ...


class SecondReader(Protocol):
    """One cluster, read only, by another client library than Spark and our own questions."""

    def read(self, slices: Sequence[OffsetRange], isolation: Isolation) -> Sequence[SliceRead]:
        """What the broker serves of each slice, in the order given.

        A slice that can't be read as a whole says why: its offsets have expired, the log ends
        before it, or no answer came in time. Raises BrokerUnavailable (retry) when nothing at all
        came of any slice, SourceRefused when the cluster or the client says no.
        """
        ...
