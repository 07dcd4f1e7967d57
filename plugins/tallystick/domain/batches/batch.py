"""What a batch is: ranges decided once, one per partition, landed and committed together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import (
    AttemptId,
    BatchId,
    FeedName,
    FencingToken,
    GenerationId,
    Owner,
)
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.window import Window


@dataclass(frozen=True, slots=True)
class PlannedRange:
    """A range, and the generation of the log that its offsets belong to."""

    generation_id: GenerationId
    offsets: OffsetRange


@dataclass(frozen=True, slots=True, order=True)
class CommittedFile:
    """The name of a committed file, unique in a ledger."""

    batch_id: BatchId
    name: str
    """File name inside the batch's directory."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Frozen at planning: a retry reads it from the ledger, and never asks the broker again.

    1. At most one range per partition.
    2. All ranges belong to generations with the same ordinal, the `gen=` of the batch's directory.
    3. The ranges of a repair are offsets of the files that it replaces: all that can still be read,
       maybe none.
    """

    batch_id: BatchId
    feed: FeedName
    root: str
    """The target's directory when it was planned: the feed may name another one by now."""
    topic: str
    cluster_id: str
    topic_id: str
    ordinal: int
    """Which life of the topic: 1 for the first, then one more for each generation opened since."""
    label: datetime
    """Start of its window, or the instant of planning: the dt= and hour= directories."""
    window: Window | None
    """Its records' own, where the feed goes by windows, else the run's; None for a repair, too."""
    ranges: tuple[PlannedRange, ...]
    replaces: tuple[CommittedFile, ...] = ()
    """Files that are retracted when this batch commits; none but for a repair."""

    def __post_init__(self) -> None:
        partitions = {each.offsets.partition for each in self.ranges}
        if len(partitions) != len(self.ranges):
            raise ValueError(f"batch {self.batch_id} has two ranges of one partition")
        if self.label.utcoffset() != timedelta(0):
            raise ValueError(f"batch {self.batch_id}: label {self.label} is not in UTC")

    def offsets_in(self, partition: int, run: tuple[int, int]) -> OffsetRange:
        """These offsets [from, until) of a partition of its topic."""
        return OffsetRange(TopicPartition(self.topic, partition), *run)

    @property
    def is_repair(self) -> bool:
        """True when its offsets are committed already, and stay so until it commits."""
        return bool(self.replaces)

    @property
    def is_give_up(self) -> bool:
        """True for a repair that claims nothing: the files that it replaces are given up."""
        return self.is_repair and not self.ranges

    @property
    def span(self) -> int:
        """Offsets in all ranges."""
        return sum(each.offsets.span for each in self.ranges)


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """A batch as the ledger has it now."""

    plan: BatchPlan
    state: BatchState
    newest_token: FencingToken
    """0 before the first attempt."""
    applications: int
    """Attempts whose Spark application had begun to read, and could be the batch's fault."""
    committed_by: AttemptId | None
    lease_seconds_left: float
    """By the ledger's clock; zero or less when nobody holds the batch."""
    holder: Owner | None

    @property
    def is_held(self) -> bool:
        """True while its lease runs."""
        return self.lease_seconds_left > 0


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to carry out a batch; the token tells older tries from the newest."""

    attempt_id: AttemptId
    batch_id: BatchId
    token: FencingToken
    owner: Owner


@dataclass(frozen=True, slots=True)
class TriedBatch:
    """An unfinished batch that was tried, and what came of it."""

    plan: BatchPlan
    failures: int
    """Attempts that have ended, or died, without a commit."""
    last_failure: str
    """Why the newest of them failed; empty where none could say."""
    holder: Owner | None
    held_seconds: float | None
    """By the ledger's clock: since the living attempt began; None when nobody holds it."""


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """A batch that waits for somebody: unfinished and held by nobody, or not yet published."""

    batch_id: BatchId
    state: BatchState
    seconds: float
    """By the ledger's clock: since its lease ended, or since its commit."""
