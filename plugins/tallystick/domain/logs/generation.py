"""Generations: the lives of a topic partition's log, as the ledger accounts for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from tallystick.domain.batches.manifest import TailAnchor
from tallystick.domain.identities import GenerationId
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition, frontier_of
from tallystick.domain.verdicts import Verdict


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
    """Claimed, committed, lost or unreadable ranges past the frontier; disjoint, sorted."""
    last_seen_until: int
    """Largest high watermark (excluded) of any look since the log began, or stopped."""
    anchor: TailAnchor | None
    """The last landed record; None before the first."""
    read_until: int | None = None
    """End (excluded) of the furthest committed range; None before the first commit."""
    seen_epoch: int | None = None
    """The leader epoch in which the log was seen to reach `last_seen_until`: with it, the log's
    witness. None if unknown."""
    unreadable: tuple[OffsetRange, ...] = ()
    """Those of `beyond` that Spark can't read: set aside until a person asks for them again."""

    def with_tail(
        self,
        claimed: Iterable[OffsetRange],
        settled: Iterable[OffsetRange],
        unreadable: Iterable[OffsetRange],
    ) -> GenerationAccount:
        """The account with this beyond its frontier, which moves to the end of what is settled:
        committed or lost.
        """
        settled, aside = tuple(settled), tuple(sorted(unreadable))
        frontier = frontier_of(self.frontier, settled)
        beyond = [each for each in (*claimed, *settled, *aside) if each.until_offset > frontier]
        return replace(self, frontier=frontier, beyond=tuple(sorted(beyond)), unreadable=aside)

    def verdict_of_none(self, readable_until: int | None) -> Verdict:
        """What may be said when nothing was found: of nothing, while records wait, nothing."""
        is_waiting = readable_until is not None and readable_until > self.frontier
        is_empty = self.frontier == self.first_offset
        return Verdict.UNKNOWN if is_empty and is_waiting else Verdict.PROVEN_OK

    @property
    def since_cut(self) -> GenerationAccount:
        """Of a stopped log what came after the cut: nothing of that is landed. Else all of it."""
        if self.state is not GenerationState.STOPPED:
            return self
        first = self.first_offset
        return replace(self, frontier=first, beyond=(), unreadable=(), anchor=None, read_until=None)

    @property
    def accounted_until(self) -> int:
        """End (excluded) of everything that was ever claimed or read, behind gaps too."""
        return self.beyond[-1].until_offset if self.beyond else self.frontier

    @property
    def readable_before(self) -> int:
        """End (excluded) of all that was ever seen, claimed or read: a whole log reaches there."""
        return max(self.last_seen_until, self.accounted_until)


def unlisted_in(
    snapshot: BrokerSnapshot, generations: Mapping[int, GenerationAccount]
) -> frozenset[int]:
    """Partitions of the snapshot's very topic that the ledger knows and the snapshot leaves out.

    A topic never loses a partition while it lives, so the broker that was asked lags behind.
    """
    return frozenset(
        partition
        for partition, account in generations.items()
        if partition not in snapshot.partitions
        and partition not in snapshot.leaderless
        and account.state is not GenerationState.CLOSED
        and snapshot.is_of(account)
    )
