"""Offset ranges of topic partitions, and the algebra that gaps, overlaps and frontiers come from.

1. A range is half-open and never empty.
2. An overlap is never merged silently: `union_of` merges on purpose, `overlaps_in` finds.
3. The frontier of a set of ranges is the end of its contiguous prefix, never its largest end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition of one topic."""

    topic: str
    partition: int

    def __post_init__(self) -> None:
        if self.partition < 0:
            raise ValueError(f"partition {self.partition} of {self.topic!r} is negative")

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, order=True)
class OffsetRange:
    """Offsets [from_offset, until_offset) of one topic partition; never empty.

    >>> r = OffsetRange(TopicPartition("orders", 0), 5, 8)
    >>> r.span, 5 in r, 8 in r
    (3, True, False)
    """

    partition: TopicPartition
    from_offset: int
    until_offset: int

    def __post_init__(self) -> None:
        if not 0 <= self.from_offset < self.until_offset:
            raise ValueError(
                f"[{self.from_offset}, {self.until_offset}) of {self.partition} is no range:"
                " 0 <= from_offset < until_offset"
            )

    @property
    def span(self) -> int:
        """Offsets in the range; records may be fewer."""
        return self.until_offset - self.from_offset

    def __contains__(self, offset: int) -> bool:
        return self.from_offset <= offset < self.until_offset

    def __str__(self) -> str:
        return f"{self.partition} [{self.from_offset}, {self.until_offset})"

    def intersection(self, other: OffsetRange) -> OffsetRange | None:
        """What both ranges share; None if they share nothing."""
        return (
            self.clipped(other.from_offset, other.until_offset)
            if (self.partition == other.partition)
            else None
        )

    def clipped(self, from_offset: int, until_offset: int) -> OffsetRange | None:
        """The part inside [from_offset, until_offset); None if there is none."""
        lower, upper = max(self.from_offset, from_offset), min(self.until_offset, until_offset)
        return OffsetRange(self.partition, lower, upper) if lower < upper else None


def offset_range(
    partition: TopicPartition, from_offset: int, until_offset: int
) -> OffsetRange | None:
    """The range, or None where it would be empty."""
    if from_offset >= until_offset:
        return None
    return OffsetRange(partition, from_offset, until_offset)


def union_of(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """The same offsets as sorted, disjoint, non-adjacent ranges.

    >>> tp = TopicPartition("t", 0)
    >>> [str(r) for r in union_of([OffsetRange(tp, 3, 5), OffsetRange(tp, 0, 3)])]
    ['t-0 [0, 5)']
    """
    merged: list[OffsetRange] = []
    for each in sorted(ranges):
        last = merged[-1] if merged else None
        if last and last.partition == each.partition and each.from_offset <= last.until_offset:
            until = max(last.until_offset, each.until_offset)
            merged[-1] = OffsetRange(last.partition, last.from_offset, until)
        else:
            merged.append(each)
    return tuple(merged)


def subtract(wanted: OffsetRange, covered: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """What of `wanted` no range of `covered` holds: sorted, disjoint, non-adjacent.

    Ranges of other partitions in `covered` don't count. Also known as the gaps in `wanted`.
    """
    ours = [each for each in covered if each.partition == wanted.partition]
    if not ours:
        return (wanted,)
    left: list[OffsetRange] = []
    position = wanted.from_offset
    for each in union_of(ours):
        gap = offset_range(wanted.partition, position, min(each.from_offset, wanted.until_offset))
        if gap:
            left.append(gap)
        position = max(position, each.until_offset)
    rest = offset_range(wanted.partition, position, wanted.until_offset)
    return (*left, rest) if rest else tuple(left)


def overlaps_in(ranges: Iterable[OffsetRange]) -> tuple[OffsetRange, ...]:
    """Offsets that two or more of the ranges hold, as sorted, disjoint ranges.

    >>> tp = TopicPartition("t", 0)
    >>> [str(r) for r in overlaps_in([OffsetRange(tp, 0, 5), OffsetRange(tp, 3, 9)])]
    ['t-0 [3, 5)']
    """
    found: list[OffsetRange] = []
    reach: OffsetRange | None = None
    for each in sorted(ranges):
        if reach is None or reach.partition != each.partition:
            reach = each
            continue
        twice = offset_range(
            each.partition, each.from_offset, min(each.until_offset, reach.until_offset)
        )
        if twice:
            found.append(twice)
        if each.until_offset > reach.until_offset:
            reach = each
    return union_of(found)


def frontier_of(first_offset: int, ranges: Sequence[OffsetRange]) -> int:
    """End (excluded) of the contiguous prefix that starts at `first_offset`.

    All ranges belong to one partition. A range beyond a gap doesn't move the frontier.
    """
    frontier = first_offset
    for each in sorted(ranges):
        if each.from_offset > frontier:
            break
        frontier = max(frontier, each.until_offset)
    return frontier
