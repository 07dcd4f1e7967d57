"""How long what is not landed yet will still be there, and since when a stable offset stands still.

The broker deletes whole segments: by age once the newest record of one is older than the retention,
by size once the segments after it alone are large enough. Both are bounds from below: a record may
outlive them, it never goes before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tallystick.domain.logs.snapshot import BatchHead, BrokerSnapshot, PartitionBounds, PastBounds

_EPOCH = datetime.fromtimestamp(0, UTC)
_MS = timedelta(milliseconds=1)
_LONGEST_MS = timedelta.max // _MS


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is asked of broker and ledger beside a snapshot, by partition; empty where idle."""

    at_frontier: Mapping[int, BatchHead] = field(default_factory=dict)
    """The batch with which the unread part of a log begins."""
    not_told: Collection[int] = ()
    """Partitions whose batch there could not be asked for: a loss may be near, or not."""
    at_stable: Mapping[int, BatchHead] = field(default_factory=dict)
    """The first batch of the oldest open transaction."""
    past: Mapping[int, Sequence[PastBounds]] = field(default_factory=dict)
    """Ends as earlier plans saw them, oldest first."""
    longest_transaction: timedelta | None = None
    """None where the brokers did not say."""
    idle: timedelta | None = None
    """Since the last sign of a run, by the ledger's clock; None where there never was one."""


@dataclass(frozen=True, slots=True)
class TimeToLoss:
    """How long the first unread batch will be kept; None where nothing limits it, or nobody knows.

    Zero or less: it may be gone at any moment.
    """

    by_age: timedelta | None
    by_size: timedelta | None

    @property
    def shortest(self) -> timedelta | None:
        """The smaller of both; None where neither is known."""
        return min((each for each in (self.by_age, self.by_size) if each is not None), default=None)


def time_to_loss(
    snapshot: BrokerSnapshot, partition: int, outlook: Outlook, *, now: datetime
) -> TimeToLoss:
    """How long the partition's first unread batch is safe; both unknown where all is landed."""
    head, bounds = outlook.at_frontier.get(partition), snapshot.partitions.get(partition)
    if head is None or bounds is None:
        return TimeToLoss(None, None)
    return TimeToLoss(
        by_age=_left_by_age(head, snapshot.retention_ms, now),
        by_size=_left_by_size(
            head, bounds, snapshot.retention_bytes, outlook.past.get(partition, ()), now
        ),
    )


def bytes_behind(head: BatchHead, bounds: PartitionBounds) -> float:
    """About how many bytes the log holds from the batch on, if all its batches are like this."""
    return (bounds.high_watermark - head.base_offset) * _bytes_per_offset(head)


def _bytes_per_offset(head: BatchHead) -> float:
    return head.byte_count / (head.until_offset - head.base_offset)


def _left_by_age(head: BatchHead, retention_ms: int | None, now: datetime) -> timedelta | None:
    if retention_ms is None or head.max_timestamp_ms is None:
        return None
    # Whole numbers: a timestamp may claim a year that no datetime can hold.
    now_ms = (now - _EPOCH) // _MS
    return as_time(head.max_timestamp_ms + retention_ms - now_ms)


def _left_by_size(
    head: BatchHead,
    bounds: PartitionBounds,
    retention_bytes: int | None,
    past: Sequence[PastBounds],
    now: datetime,
) -> timedelta | None:
    if retention_bytes is None or not past:
        return None
    grown, elapsed = bounds.high_watermark - past[0].high_watermark, now - past[0].looked_at
    if grown <= 0 or elapsed <= timedelta():
        return None
    left_bytes = retention_bytes - bytes_behind(head, bounds)
    return as_time(elapsed / _MS * left_bytes / (grown * _bytes_per_offset(head)))


def as_time(milliseconds: float) -> timedelta:
    """So much time, or the most that can be told: a limit may stand for "for ever"."""
    return timedelta(milliseconds=max(-_LONGEST_MS, min(milliseconds, _LONGEST_MS)))
