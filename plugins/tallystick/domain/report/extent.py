"""How much a finding is about: rows of which time, and until when Kafka still has them.

1. What the ledger does not know is None: no number of rows, and no time, is guessed.
2. What Kafka has is by the newest look, and says so. How long it keeps that is a bound from below:
   by retention, from before when none of the records can have come.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

Interval = tuple[int, int, int, int]
"""Partition, generation, and offsets from one (included) to another (excluded)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """What is known of some offsets."""

    offsets: int
    rows: int | None = None
    """That they hold; None where no committed file says it."""
    since: datetime | None = None
    """Where they were landed: under which time; None for what was not."""
    is_by_time: bool = False
    """True where that is the time of their records; else it is that of a run."""
    until: datetime | None = None
    """The end of that (excluded); None where they were landed without a window."""
    kept: int | None = None
    """How many of the offsets Kafka still had; None where nobody could tell."""
    kept_until: datetime | None = None
    """About when it may begin to delete them; None where nothing limits it, or nobody knows."""
    looked_at: datetime | None = None
    """When Kafka was looked at; None where it never was."""


def all_together(found: Iterable[tuple[Interval, Extent]]) -> Extent | None:
    """One extent for all; an offset that several findings are about counts once. None for none.

    Where intervals overlap in part, what they hold can't be added up.
    """
    known = dict(found)
    if not known:
        return None
    extents = list(known.values())
    offsets = _span_of(known)
    is_parted = offsets == sum(each.offsets for each in extents)
    rows = [each.rows for each in extents if each.rows is not None]
    kept = [each.kept for each in extents if each.kept is not None]
    ends = [each.until for each in extents if each.until]
    by_time = [each.is_by_time for each in extents if each.since]
    has_ends = len(ends) == sum(1 for each in extents if each.since)
    return Extent(
        offsets=offsets,
        rows=sum(rows) if is_parted and len(rows) == len(extents) else None,
        since=min((each.since for each in extents if each.since), default=None),
        until=max(ends) if ends and has_ends else None,
        is_by_time=bool(by_time) and all(by_time),
        kept=sum(kept) if is_parted and len(kept) == len(extents) else None,
        kept_until=min((each.kept_until for each in extents if each.kept_until), default=None),
        looked_at=min((each.looked_at for each in extents if each.looked_at), default=None),
    )


def _span_of(intervals: Iterable[Interval]) -> int:
    """How many offsets they hold together."""
    span, log, reach = 0, (0, 0), 0
    for partition, generation, first, end in sorted(intervals):
        if (partition, generation) != log:
            log, reach = (partition, generation), first
        span += max(0, end - max(first, reach))
        reach = max(reach, end)
    return span
