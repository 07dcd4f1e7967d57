"""Offsets as bit maps: words of 64 that a machine counts in bulk, to and from runs.

Word `n` holds the offsets from 64 n on, the lowest bit first. Words are signed, as Spark's numbers
of 64 bits are; one without a bit is left out.

1. `runs_of_words(words_of_runs(runs)) == runs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tallystick.domain.offsets.runs import OffsetRuns

_BITS: Final = 64
_FULL: Final = (1 << _BITS) - 1
_ALL: Final = -1
"""A full word, signed."""


def runs_of_words(words: Iterable[tuple[int, int]]) -> OffsetRuns:
    """The offsets of a bit map, given as place and word in any order.

    >>> runs_of_words([(0, 0b1101), (1, -1), (2, 1)])
    OffsetRuns.of([(0, 1), (2, 4), (64, 129)])
    """
    return OffsetRuns.of(run for place, word in words for run in _runs_in(place * _BITS, word))


def words_of_runs(runs: OffsetRuns) -> Iterator[tuple[int, int]]:
    """The bit map of offsets: place and word, in ascending order.

    >>> list(words_of_runs(OffsetRuns.of([(0, 1), (2, 4), (64, 129)])))
    [(0, 13), (1, -1), (2, 1)]
    """
    place, word = 0, 0
    for from_offset, until_offset in runs:
        first, last = from_offset // _BITS, (until_offset - 1) // _BITS
        if first != place:
            if word:
                yield place, _signed(word)
            place, word = first, 0
        if first < last:
            yield place, _signed(word | _FULL << from_offset % _BITS & _FULL)
            for full in range(first + 1, last):
                yield full, _ALL
            place, word = last, _FULL >> _BITS - 1 - (until_offset - 1) % _BITS
        else:
            word |= (1 << until_offset - from_offset) - 1 << from_offset % _BITS
    if word:
        yield place, _signed(word)


def _runs_in(first: int, word: int) -> Iterable[tuple[int, int]]:
    if word == _ALL:
        yield first, first + _BITS
        return
    left, position = word & _FULL, first
    while left:
        zeros = (left & -left).bit_length() - 1
        left >>= zeros
        ones = (~left & left + 1).bit_length() - 1
        left >>= ones
        yield position + zeros, position + zeros + ones
        position += zeros + ones


def _signed(word: int) -> int:
    return word - (1 << _BITS) if word >> _BITS - 1 else word
