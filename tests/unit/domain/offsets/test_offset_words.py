"""Offsets as words of 64 bits, to and from runs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.offsets.offset_words import runs_of_words, words_of_runs
from tallystick.domain.offsets.runs import OffsetRuns

# Ends of words, and words with runs of all lengths.
OFFSETS = st.sets(st.integers(0, 300))
RUNS = st.lists(st.tuples(st.integers(0, 2**40), st.integers(1, 200))).map(
    lambda pairs: OffsetRuns.of((first, first + length) for first, length in pairs)
)


def runs(offsets: set[int]) -> OffsetRuns:
    return OffsetRuns.of((each, each + 1) for each in sorted(offsets))


def words(offsets: set[int]) -> list[tuple[int, int]]:
    """Bit by bit."""
    bits: dict[int, int] = {}
    for each in offsets:
        bits[each >> 6] = bits.get(each >> 6, 0) | 1 << (each & 63)
    return sorted((n, word - (1 << 64) if word >> 63 else word) for n, word in bits.items())


@given(OFFSETS)
def test_words_hold_exactly_the_offsets(offsets: set[int]) -> None:
    assert list(words_of_runs(runs(offsets))) == words(offsets)
    assert runs_of_words(words(offsets)) == runs(offsets)


@given(RUNS)
def test_runs_become_words_and_the_same_runs_again(some: OffsetRuns) -> None:
    bits = list(words_of_runs(some))
    assert runs_of_words(bits) == some
    assert runs_of_words(reversed(bits)) == some
