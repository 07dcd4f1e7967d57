"""What the broker said at one instant: identity of the topic, and the bounds of every partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol

from tallystick.domain.batches.states import Isolation

# Clocks that are kept in step differ by less.
CLOCKS_MAY_DIFFER: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class PartitionBounds:
    """One partition's offsets, as its leader sees them."""

    log_start_offset: int
    """First offset still on the broker (included)."""
    high_watermark: int
    """One past the last replicated offset (excluded)."""
    last_stable_offset: int
    """One past what read_committed may see (excluded)."""
    leader_epoch: int | None
    """Number of the leadership term; None where the broker gave none."""

    def readable_until(self, isolation: Isolation) -> int:
        """One past what may be read under this isolation level."""
        if isolation is Isolation.READ_COMMITTED:
            return self.last_stable_offset
        return self.high_watermark


@dataclass(frozen=True, slots=True)
class WindowBorder:
    """Where a window that was over ended in each partition, by the broker's time index."""

    instant: datetime
    """The window's end (excluded)."""
    offsets: Mapping[int, int | None] = field(default_factory=dict)
    """The first offset at or after it; None where no record is as late. Empty where it was not
    told of this very log."""
    ends: Mapping[int, int] = field(default_factory=dict)
    """End (excluded) of what may be older; only of partitions of which that is known."""
    from_future: Mapping[int, int] = field(default_factory=dict)
    """By partition, the offset at the border where that record claims a time that is still far
    ahead: whatever follows it, the index tells of no window's end behind it."""


class OfOneLog(Protocol):
    """What belongs to one life of a topic, on one cluster."""

    @property
    def cluster_id(self) -> str:
        """The cluster's."""
        ...

    @property
    def topic_id(self) -> str:
        """Another one for each life of the topic."""
        ...


@dataclass(frozen=True, slots=True)
class BrokerSnapshot:
    """One topic at one instant."""

    cluster_id: str
    topic: str
    topic_id: str
    taken_at: datetime
    partitions: Mapping[int, PartitionBounds]
    """Of every partition that has a leader."""
    leaderless: frozenset[int] = frozenset()
    """Partitions that exist and can't be asked now, without a leader or with one that waits for its
    replicas: nothing is said about them, least of all that they are empty."""
    unlisted: frozenset[int] = frozenset()
    """Partitions that this very topic is known to have, and that the broker did not list."""
    is_compacted: bool = False
    """True when the topic's cleanup policy contains `compact` now."""
    retention_ms: int | None = None
    """None when the topic keeps records for ever."""
    retention_bytes: int | None = None
    """Of one partition; None when the topic keeps any amount."""
    border: WindowBorder | None = None
    """Of the newest window, for a feed that lands by windows."""

    def is_of(self, other: OfOneLog) -> bool:
        """True when both are of one life of the topic: it was not re-created in between, and no
        other cluster was asked.
        """
        return self.topic_id == other.topic_id and self.cluster_id == other.cluster_id

    @property
    def unheard(self) -> frozenset[int]:
        """Partitions that are known to exist, and of which the broker said nothing."""
        return self.leaderless | self.unlisted


@dataclass(frozen=True, slots=True)
class PastBounds:
    """One partition's ends as an earlier snapshot showed them."""

    looked_at: datetime
    high_watermark: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class BatchHead:
    """The header of one record batch: the unit in which the broker stores and deletes records."""

    base_offset: int
    """Included."""
    until_offset: int
    """Excluded."""
    max_timestamp_ms: int | None
    """The latest of its records' times; None where the producer gave none."""
    byte_count: int
    producer_id: int | None
    """None for a producer without idempotence."""


@dataclass(frozen=True, slots=True)
class RecordEvidence:
    """One record as the broker serves it, reduced to what the tail anchor needs."""

    offset: int
    leader_epoch: int | None
    content_hash: bytes
    """128 bits over partition, offset, timestamp, key, value and headers: `record_hash`."""


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """Where a leader's log leaves an epoch: what OffsetForLeaderEpoch answers (KIP-101)."""

    until_offset: int
    """End (excluded) of the largest epoch up to the one that was asked for; of one that the broker
    has forgotten, the start of its oldest entry."""
    log_start_offset: int
    """First offset still in the log (included), asked for after the end."""
