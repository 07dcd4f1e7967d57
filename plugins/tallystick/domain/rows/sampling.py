"""Which offsets of a batch the second reader compares: the ends of its ranges, and random slices.

1. The same batch and turn give the same slices, on every machine; another turn gives others.
2. A sample is never larger than it may be, however many partitions the batch has; the ends of as
   many ranges as fit are in it, and of the other ranges those that chance takes.
3. Slices are sorted, disjoint, and inside the ranges.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Final

from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.ranges import OffsetRange, union_of


@dataclass(frozen=True, slots=True)
class SampleSize:
    """How much of a batch is compared at most."""

    slices: int
    """Places; each of them may cost the reading of a row group."""
    span: int
    """Offsets of one slice."""
    end_share: float = 0.75
    """How much of `slices` the ends of ranges may take; the rest is for random ones."""

    @property
    def offsets(self) -> int:
        """Offsets in all, at most."""
        return self.slices * self.span


FIRST_SAMPLE: Final = SampleSize(slices=16, span=8)
"""Of a batch that was never compared: 128 offsets, a small share of what its landing cost."""

_ROTATION_SPAN: Final = 100
_FEWEST_SLICES: Final = 20


def rotation_size(budget: int, batches: int) -> SampleSize:
    """An equal share of so many records for each of the batches, but never less than 2,000.

    A larger share would show more of one batch, a smaller one come to more batches: each place has
    a price of its own, so a share of a few records would be spent on reaching them.

    >>> rotation_size(100_000, 10).offsets, rotation_size(100_000, 5_000).offsets
    (10000, 2000)
    """
    share = budget // max(1, batches)
    return SampleSize(max(_FEWEST_SLICES, share // _ROTATION_SPAN), _ROTATION_SPAN)


def sampled(
    batch_id: BatchId, turn: int, ranges: Sequence[OffsetRange], size: SampleSize
) -> tuple[OffsetRange, ...]:
    """The slices of these ranges that are compared in this turn: all of them, if they fit."""
    if len(ranges) <= size.slices and sum(each.span for each in ranges) <= size.offsets:
        return union_of(ranges)
    chance = Random(f"{batch_id}/{turn}")
    ordered = sorted(ranges)
    with_ends = ordered
    most = max(1, int(size.slices * size.end_share) // 2)
    if len(ordered) > most:
        with_ends = chance.sample(ordered, most)
    chosen = [end for each in with_ends for end in _ends(each, size.span)]
    untils = list(accumulate(each.span for each in ordered))
    for _ in range(size.slices - 2 * len(with_ends)):
        place = chance.randrange(untils[-1])
        number = bisect_right(untils, place)
        within = ordered[number]
        start = within.until_offset - (untils[number] - place)
        chosen.append(_slice(within, start, size.span))
    return union_of(chosen)


def _ends(within: OffsetRange, span: int) -> tuple[OffsetRange, OffsetRange]:
    return (
        _slice(within, within.from_offset, span),
        _slice(within, within.until_offset - span, span),
    )


def _slice(within: OffsetRange, start: int, span: int) -> OffsetRange:
    """So many offsets from here on, or from as far before as they fit into the range."""
    first = max(within.from_offset, min(start, within.until_offset - span))
    until = min(within.until_offset, first + span)
    return OffsetRange(within.partition, first, until)
