"""What the rows of a slice are, in a few numbers: the same whoever reads them, in whatever order.

1. Additive: the fingerprint of two sets of rows together is the sum of their fingerprints.
2. A row that is there twice shows: hashes are summed, not xored, which would cancel a pair.
3. The hash covers the row's place, so two rows that changed places show, and tells null from empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tallystick.domain.rows.row_hash import wrapped


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The rows of one slice, or of several together.

    >>> both = Fingerprint.of_row(5, 2**64) + Fingerprint.of_row(6, 3)
    >>> both.record_count, both.offset_sum, both.hash_sums
    (2, 11, (1, 3))
    """

    record_count: int
    offset_sum: int
    hash_sums: tuple[int, int]
    """Sums of the high and of the low 64 bits of each row's 128-bit hash, modulo 2^64, signed.

    Other rows, as many, have the same sums by accident once in 2^128."""
    first_offset: int | None
    """Smallest offset (included); None without a row."""
    last_offset: int | None
    """Largest offset (included); None without a row."""

    @classmethod
    def of_row(cls, offset: int, row_hash: int) -> Fingerprint:
        """The fingerprint of one row, from its 128-bit hash."""
        return cls(1, offset, (wrapped(row_hash >> 64), wrapped(row_hash)), offset, offset)

    def __add__(self, other: Fingerprint) -> Fingerprint:
        firsts = [each.first_offset for each in (self, other) if each.first_offset is not None]
        lasts = [each.last_offset for each in (self, other) if each.last_offset is not None]
        high, low = (wrapped(a + b) for a, b in zip(self.hash_sums, other.hash_sums, strict=True))
        return Fingerprint(
            self.record_count + other.record_count,
            self.offset_sum + other.offset_sum,
            (high, low),
            min(firsts, default=None),
            max(lasts, default=None),
        )

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


EMPTY: Final = Fingerprint(0, 0, (0, 0), None, None)


def _worded(offset: int | None) -> str:
    return "none" if offset is None else str(offset)
