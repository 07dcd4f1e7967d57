"""What the rows of a slice are, in a few numbers: the same whoever reads them, in whatever order.

1. Additive: the fingerprint of two sets of rows together is the sum of their fingerprints.
2. A row that is there twice shows: hashes are summed, not xored, which would cancel a pair.
3. The hash covers the row's place, so two rows that changed places show, and tells null from empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

QUARTERS: Final = 4
_QUARTER_BITS: Final = 32
_MASK: Final = (1 << _QUARTER_BITS) - 1
_HALF: Final = 1 << 2 * _QUARTER_BITS


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The rows of one slice, or of several together.

    >>> both = Fingerprint.of_row(5, 2**96) + Fingerprint.of_row(6, 3)
    >>> both.record_count, both.offset_sum, both.hash_sums
    (2, 11, (1, 0, 0, 3))
    """

    record_count: int
    offset_sum: int
    hash_sums: tuple[int, int, int, int]
    """Sums of the four 32-bit quarters of each row's 128-bit hash, the highest quarter first."""
    first_offset: int | None
    """Smallest offset (included); None without a row."""
    last_offset: int | None
    """Largest offset (included); None without a row."""

    @classmethod
    def of_row(cls, offset: int, row_hash: int) -> Fingerprint:
        """The fingerprint of one row, from its 128-bit hash."""
        first, second, third, fourth = (
            row_hash >> _QUARTER_BITS * place & _MASK for place in reversed(range(QUARTERS))
        )
        return cls(1, offset, (first, second, third, fourth), offset, offset)

    @classmethod
    def of_rows(cls, rows: Iterable[tuple[int, int]]) -> Fingerprint:
        """The fingerprint of rows given as offset and 128-bit hash."""
        return sum((cls.of_row(*each) for each in rows), start=EMPTY)

    def __add__(self, other: Fingerprint) -> Fingerprint:
        firsts = [each.first_offset for each in (self, other) if each.first_offset is not None]
        lasts = [each.last_offset for each in (self, other) if each.last_offset is not None]
        first, second, third, fourth = (
            a + b for a, b in zip(self.hash_sums, other.hash_sums, strict=True)
        )
        return Fingerprint(
            self.record_count + other.record_count,
            self.offset_sum + other.offset_sum,
            (first, second, third, fourth),
            min(firsts, default=None),
            max(lasts, default=None),
        )

    def has_halves(self, record_count: int, upper_sum: int, lower_sum: int) -> bool:
        """True for as many rows whose hashes' halves of 64 bits add up to the same, modulo 2^64.

        The sums may be signed. By accident other rows have the same ones once in 2^128.

        >>> Fingerprint(2, 0, (2**32 + 1, 2, 0, 5), 0, 0).has_halves(2, 2**32 + 2, 5 - 2**64)
        True
        """
        first, second, third, fourth = self.hash_sums
        upper, lower = (first << _QUARTER_BITS) + second, (third << _QUARTER_BITS) + fourth
        differences = (upper - upper_sum, lower - lower_sum)
        return record_count == self.record_count and not any(each % _HALF for each in differences)

    def differences(self, found: Fingerprint) -> tuple[str, ...]:
        """What `found` says otherwise than this one, in words; empty when both are the same.

        >>> EMPTY.differences(Fingerprint.of_row(7, 0))[:2]
        ('0 rows were there, 1 are now', 'the first offset was none, it is 7 now')
        """
        said = []
        if self.record_count != found.record_count:
            said.append(f"{self.record_count} rows were there, {found.record_count} are now")
        for name, before, now in (
            ("the first offset", self.first_offset, found.first_offset),
            ("the last offset", self.last_offset, found.last_offset),
            ("the sum of offsets", self.offset_sum, found.offset_sum),
        ):
            if before != now:
                said.append(f"{name} was {_worded(before)}, it is {_worded(now)} now")
        if self.hash_sums != found.hash_sums:
            said.append("the hashes over place and content add up to something else")
        return tuple(said)


EMPTY: Final = Fingerprint(0, 0, (0, 0, 0, 0), None, None)


def quarters_of(sums: Sequence[int]) -> tuple[int, int, int, int]:
    """Four sums of quarters; ValueError for more or fewer.

    >>> quarters_of([1, 2, 3, 4])
    (1, 2, 3, 4)
    """
    if len(sums) != QUARTERS:
        raise ValueError(f"{len(sums)} sums of hashes, {QUARTERS} expected")
    first, second, third, fourth = (int(each) for each in sums)
    return first, second, third, fourth


def _worded(offset: int | None) -> str:
    return "none" if offset is None else str(offset)
