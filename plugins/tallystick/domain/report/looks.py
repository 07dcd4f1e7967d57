"""Looks at the broker that are on record, and why one of them proves nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Final

from tallystick.domain.identities import BatchId
from tallystick.domain.logs.snapshot import CLOCKS_MAY_DIFFER
from tallystick.domain.report.standing import LastHeard
from tallystick.domain.rules.n1_overdue import STORAGE_IS_DUE

_NO_BORDER: Final = (
    "the look proves nothing, for the time index did not tell where its window ends."
)


@dataclass(frozen=True, slots=True)
class Look:
    """The high watermarks that one snapshot showed."""

    looked_at: datetime
    """Before the broker was asked; never later than the ledger's clock was then."""
    topic_id: str
    partitions: Sequence[int]
    """Ascending."""
    high_watermarks: Sequence[int]
    """Excluded; one for each of `partitions`."""
    leaderless: frozenset[int] = frozenset()
    """Partitions that exist, and of which nothing is known."""
    doubt: str | None = None
    """Why it proves nothing, as a sentence; None for a look that does."""
    border_at: datetime | None = None
    """The end of the window that it asked the time index for; None where it asked for none."""
    borders: Sequence[int | None] = ()
    """Excluded; one for each of `partitions`, or none at all: up to there records may be older than
    the border. None where that is not known."""

    @property
    def ends(self) -> Mapping[int, int]:
        """Where the window ends, by partition, as far as that is known; nothing in doubt."""
        if self.doubt:
            return {}
        told = zip(self.partitions, self.borders, strict=bool(self.borders))
        return {partition: end for partition, end in told if end is not None}


@dataclass(frozen=True, slots=True)
class LookPlace:
    """One look at the broker, without what it showed."""

    snapshot_id: int
    looked_at: datetime
    """Never later than the ledger's clock was when the look began."""
    border_at: datetime | None
    """The end of the window that it asked the time index for; None where it asked for none."""
    is_ahead: bool
    """True where a look that began later has an earlier time: a clock was set back."""


def look_of_window(first: Look, later: Iterable[Look], partitions: Collection[int]) -> Look:
    """What the looks at one window prove of its end, in place of an instant.

    They come in the order in which they began. Each partition's end is told by the first one that
    knows it: later ones see what came late, too. No more are read than these partitions need.
    """
    ends: dict[int, int] = {}
    named: set[int] = set()
    for each in chain([first], later):
        if each.topic_id == first.topic_id:
            ends = {**each.ends, **ends}
            named |= {*each.partitions, *each.leaderless}
        if ends.keys() >= named.union(partitions):
            break
    told = sorted(ends)
    return Look(
        looked_at=first.border_at or first.looked_at,
        topic_id=first.topic_id,
        partitions=told,
        high_watermarks=[ends[each] for each in told],
        leaderless=frozenset(named - ends.keys()),
        doubt=None if ends else first.doubt or _NO_BORDER,
    )


def doubt_of_clock(asked_at: datetime, recorded_at: datetime) -> str | None:
    """Why a look proves nothing whose asker's clock was ahead of the ledger's when it was kept.

    A clock that is behind proves less, and never too much.
    """
    ahead = asked_at - recorded_at
    if ahead <= CLOCKS_MAY_DIFFER:
        return None
    return (
        "the look proves nothing, for the clock of the machine that asked the broker was"
        f" {ahead.total_seconds():.0f} s ahead of the ledger's. Set the one that is wrong."
    )


def doubt_of_order(place: LookPlace) -> str | None:
    """Why a look proves nothing that one of an earlier time has followed; None for any other."""
    if not place.is_ahead:
        return None
    return "the look proves nothing, for a later one is of an earlier time: a clock is wrong."


def doubt_of_storage(
    looked_at: datetime, storage: LastHeard, first_look_at: datetime
) -> str | None:
    """Why a look proves nothing that nobody has compared with storage; None for any other.

    Each commit has read its own files back, so the feed's first look is as good as an answer.
    """
    since, overdue = storage.silent_since, (storage.heard_at or first_look_at) + STORAGE_IS_DUE
    if since and looked_at > since:
        return f"the look proves nothing, for storage is silent since {since:%Y-%m-%d %H:%M} UTC."
    if looked_at > overdue:
        return f"the look proves nothing, for no reconcile heard storage: due {overdue:%Y-%m-%d}."
    return None


@dataclass(frozen=True, slots=True)
class CameLate:
    """Landed rows that lie under later windows than their own."""

    before: datetime | None
    """Where it is given, those from before it, under windows that begin at it or later."""
    rows: int
    """At most, before an instant: of a file with such a row, all late ones are counted."""
    oldest_at: datetime
    batch_id: BatchId
    """The newest batch that holds some."""
