"""A set of offsets of one partition, kept as its maximal runs.

Exact, and small where offsets are dense: ten million contiguous offsets are one run. Two machine
arrays instead of ten million objects keep sparse sets (compacted topics) affordable.

1. Runs are sorted, never empty, never overlap, never touch.
2. Sets are made of sets in one pass over their arrays; no run becomes an object that stays.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Final

# What comes after the last run: behind every offset, which are signed numbers of 64 bits.
_AFTER_ALL: Final = (2**63, 2**63)


def _empty() -> array[int]:
    return array("q")


def _little_endian(offsets: array[int]) -> bytes:
    if sys.byteorder == "little":
        return offsets.tobytes()
    swapped = offsets[:]
    swapped.byteswap()
    return swapped.tobytes()


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
        """The union of the half-open pairs, in any order; empty pairs count for nothing.

        Pairs that come sorted cost no memory beyond their runs.
        """
        starts, untils = _empty(), _empty()
        late: list[tuple[int, int]] = []
        for from_offset, until_offset in pairs:
            if from_offset >= until_offset:
                continue
            if not untils or from_offset > untils[-1]:
                starts.append(from_offset)
                untils.append(until_offset)
            elif from_offset < starts[-1]:
                late.append((from_offset, until_offset))
            elif until_offset > untils[-1]:
                untils[-1] = until_offset
        runs = cls(starts, untils)
        return runs.union(cls.of(sorted(late))) if late else runs

    @property
    def count(self) -> int:
        """How many offsets there are."""
        return sum(self.until_offsets) - sum(self.from_offsets)

    @property
    def sum(self) -> int:
        """All offsets added up.

        >>> OffsetRuns.of([(0, 3), (5, 6)]).sum
        8
        """
        return sum((until - start) * (start + until - 1) // 2 for start, until in self)

    @property
    def digest(self) -> str:
        """SHA-256 of all runs.

        >>> OffsetRuns.of([(0, 3)]).digest == OffsetRuns.of([(0, 2), (2, 3)]).digest
        True
        """
        found = sha256()
        for each in (self.from_offsets, self.until_offsets):
            # Little-endian on every machine: executors may not be what the driver is.
            found.update(_little_endian(each))
        return found.hexdigest()

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
        return hash((self.from_offsets.tobytes(), self.until_offsets.tobytes()))

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
        if not self or not other:
            return self or other
        reach = (
            min(self.from_offsets[0], other.from_offsets[0]),
            max(self.until_offsets[-1], other.until_offsets[-1]),
        )
        in_none = self.complement(*reach).intersection(other.complement(*reach))
        return in_none.complement(*reach)

    def clipped(self, from_offset: int, until_offset: int) -> OffsetRuns:
        """The offsets inside [from_offset, until_offset)."""
        first = bisect_right(self.until_offsets, from_offset)
        end = bisect_left(self.from_offsets, until_offset)
        if from_offset >= until_offset or first >= end:
            return OffsetRuns()
        starts, untils = self.from_offsets[first:end], self.until_offsets[first:end]
        starts[0] = max(starts[0], from_offset)
        untils[-1] = min(untils[-1], until_offset)
        return OffsetRuns(starts, untils)

    def complement(self, from_offset: int, until_offset: int) -> OffsetRuns:
        """The offsets of [from_offset, until_offset) that are not in the set."""
        if from_offset >= until_offset:
            return OffsetRuns()
        inside = self.clipped(from_offset, until_offset)
        # What is missing begins where a run ends, and ends where the next one begins.
        starts, untils = inside.until_offsets, inside.from_offsets
        starts.insert(0, from_offset)
        untils.append(until_offset)
        for end in (0, -1):
            if starts and starts[end] == untils[end]:
                del starts[end], untils[end]
        return OffsetRuns(starts, untils)

    def difference(self, other: OffsetRuns) -> OffsetRuns:
        """The offsets of this set that are not in the other."""
        if not self or not other:
            return self
        reach = (self.from_offsets[0], self.until_offsets[-1])
        return self.intersection(other.complement(*reach))

    def intersection(self, other: OffsetRuns) -> OffsetRuns:
        """The offsets in both sets."""
        starts, untils = _empty(), _empty()
        if not self or not other:
            return OffsetRuns(starts, untils)
        reach = (self.from_offsets[0], self.until_offsets[-1])
        theirs = iter(other.clipped(*reach))
        start, until = next(theirs, _AFTER_ALL)
        for from_offset, until_offset in self:
            while until <= from_offset:
                start, until = next(theirs, _AFTER_ALL)
            while start < until_offset:
                starts.append(start if start > from_offset else from_offset)
                if until > until_offset:
                    untils.append(until_offset)
                    break
                untils.append(until)
                start, until = next(theirs, _AFTER_ALL)
        return OffsetRuns(starts, untils)

    def described(self, most: int = 5) -> str:
        """The runs for a person: the first few, and how many more.

        >>> OffsetRuns.of([(0, 1), (4, 9)]).described()
        '0, [4, 9)'
        """
        shown = [str(a) if b == a + 1 else f"[{a}, {b})" for a, b in islice(self, most)]
        more = len(self) - len(shown)
        return ", ".join(shown) + (f" and {more} more runs" if more else "")


class GrowingRuns:
    """Offsets that come in order, gathered without copying what is there already."""

    def __init__(self) -> None:
        self._starts, self._untils = _empty(), _empty()

    def add(self, more: OffsetRuns) -> None:
        """Take offsets that are all behind those taken before; ValueError if they aren't."""
        if not more:
            return
        starts, untils = more.from_offsets, more.until_offsets
        if self._untils and starts[0] < self._untils[-1]:
            raise ValueError(f"{starts[0]} comes after {self._untils[-1] - 1}")
        if self._untils and starts[0] == self._untils[-1]:
            self._untils[-1] = untils[0]
            starts, untils = starts[1:], untils[1:]
        self._starts.extend(starts)
        self._untils.extend(untils)

    def taken(self) -> OffsetRuns:
        """All offsets so far."""
        return OffsetRuns(self._starts[:], self._untils[:])
