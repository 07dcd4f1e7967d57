"""Generations: the lives of a topic partition's log, as the ledger accounts for them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tallystick.domain.identities import GenerationId
from tallystick.domain.manifest import TailAnchor
from tallystick.domain.ranges import OffsetRange, TopicPartition


class GenerationState(StrEnum):
    """If offsets of a generation may still be planned."""

    OPEN = "open"
    STOPPED = "stopped"
    """Truncated: nothing is planned until an operator opens a new generation."""
    CLOSED = "closed"
    """The log is gone: topic re-created, or an operator's word."""


@dataclass(frozen=True, slots=True)
class GenerationAccount:
    """What the ledger holds of one generation: enough to plan, never the whole history."""

    generation_id: GenerationId
    partition: TopicPartition
    cluster_id: str
    topic_id: str
    ordinal: int
    state: GenerationState
    first_offset: int
    """Where the feed's responsibility begins (included)."""
    frontier: int
    """End (excluded) of the prefix that is landed, proven hole, or recorded as lost."""
    beyond: tuple[OffsetRange, ...]
    """Claimed, committed or lost ranges that reach past the frontier; disjoint, sorted."""
    last_seen_until: int
    """Largest high watermark (excluded) that any snapshot showed."""
    anchor: TailAnchor | None
    """The last landed record; None before the first."""
    read_until: int | None = None
    """End (excluded) of the furthest committed range; None before the first commit."""
    read_epoch: int | None = None
    """The leader epoch just before that range was read; None where the broker gave none."""
    seen_epoch: int | None = None
    """The leader epoch in which the log was seen to reach `last_seen_until`; None if unknown."""

    @property
    def accounted_until(self) -> int:
        """End (excluded) of everything that was ever claimed or read, behind gaps too."""
        return max((each.until_offset for each in self.beyond), default=self.frontier)

    @property
    def readable_before(self) -> int:
        """End (excluded) of all that was ever seen, claimed or read: a whole log reaches there."""
        return max(self.last_seen_until, self.accounted_until)
