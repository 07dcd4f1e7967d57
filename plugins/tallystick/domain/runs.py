"""A set of offsets of one partition, kept as its maximal runs.

Exact, and small where offsets are dense: ten million contiguous offsets are one run. Two machine
arrays instead of ten million objects keep sparse sets (compacted topics) affordable.

1. Runs are sorted, never empty, never overlap, never touch.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field


def _empty() -> array[int]:
    return array("q")


@dataclass(frozen=True, slots=True, eq=False)
class OffsetRuns:
    """Offsets as runs [from, until); equal when they hold the same offsets.

    >>> runs = OffsetRuns.of([(0, 3), (5, 6)])
    >>> runs.count, list(runs.complement(0, 8))
    (4, [(3, 5), (6, 8)])
    """

    from_offsets: array[int] = field(default_factory=_empty)
    until_offsets: array[int] = field(default_factory=_empty)

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> OffsetRuns:
        """The union of the half-open pairs, in any order; empty pairs count for nothing."""
        starts, untils = _empty(), _empty()
        for from_offset, until_offset in sorted(pairs):
            if from_offset >= until_offset:
                continue
            if untils and from_offset <= untils[-1]:
                untils[-1] = max(untils[-1], until_offset)
            else:
                starts.append(from_offset)
                untils.append(until_offset)
        return cls(starts, untils)

    @property
    def count(self) -> int:
        """How many offsets there are."""
        return sum(self.until_offsets) - sum(self.from_offsets)

    def __len__(self) -> int:
        return len(self.from_offsets)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.from_offsets, self.until_offsets, strict=True)

    def __bool__(self) -> bool:
        return bool(self.from_offsets)

    def __contains__(self, offset: int) -> bool:
        index = bisect_right(self.from_offsets, offset) - 1
        return index >= 0 and offset < self.until_offsets[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OffsetRuns):
            return NotImplemented
        return (self.from_offsets, self.until_offsets) == (other.from_offsets, other.until_offsets)

    def __hash__(self) -> int:
        return hash((tuple(self.from_offsets), tuple(self.until_offsets)))

    def __repr__(self) -> str:
        return f"OffsetRuns.of({list(self)!r})"

    @property
    def first_offset(self) -> int | None:
        """The smallest offset (included); None if there is none."""
        return self.from_offsets[0] if self.from_offsets else None

    @property
    def last_offset(self) -> int | None:
        """The largest offset (included); None if there is none."""
        return self.until_offsets[-1] - 1 if self.until_offsets else None

    def union(self, other: OffsetRuns) -> OffsetRuns:
        """Offsets in one of both, or in both."""
        return OffsetRuns.of([*self, *other])

    def clipped(self, from_offset: int, until_offset: int) -> OffsetRuns:
        """The offsets inside [from_offset, until_offset)."""
        return OffsetRuns.of((max(a, from_offset), min(b, until_offset)) for a, b in self)

    def complement(self, from_offset: int, until_offset: int) -> OffsetRuns:
        """The offsets of [from_offset, until_offset) that are not in the set."""
        missing: list[tuple[int, int]] = []
        position = from_offset
        for start, until in self.clipped(from_offset, until_offset):
            missing.append((position, start))
            position = until
        missing.append((position, until_offset))
        return OffsetRuns.of(missing)

    def difference(self, other: OffsetRuns) -> OffsetRuns:
        """The offsets of this set that are not in the other."""
        if not self or not other:
            return self
        reach = (self.from_offsets[0], self.until_offsets[-1])
        return self.intersection(other.complement(*reach))

    def intersection(self, other: OffsetRuns) -> OffsetRuns:
        """The offsets in both sets."""
        shared: list[tuple[int, int]] = []
        mine, theirs = iter(self), iter(other)
        a, b = next(mine, None), next(theirs, None)
        while a and b:
            shared.append((max(a[0], b[0]), min(a[1], b[1])))
            if a[1] <= b[1]:
                a = next(mine, None)
            else:
                b = next(theirs, None)
        return OffsetRuns.of(shared)

    def described(self, most: int = 5) -> str:
        """The runs for a person: the first few, and how many more.

        >>> OffsetRuns.of([(0, 1), (4, 9)]).described()
        '0, [4, 9)'
        """
        shown = [str(a) if b == a + 1 else f"[{a}, {b})" for a, b in list(self)[:most]]
        more = len(self) - len(shown)
        return ", ".join(shown) + (f" and {more} more runs" if more else "")
