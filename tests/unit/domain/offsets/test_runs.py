"""Sets of offsets as runs and as words of 64 bits, against sets of integers."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.offsets.offset_words import runs_of_words, words_of_runs
from tallystick.domain.offsets.runs import GrowingRuns, OffsetRuns
from tests.support.strategies import offset_runs, pair_lists, small_offsets


def _members(pairs: OffsetRuns | list[tuple[int, int]]) -> set[int]:
    return {offset for a, b in pairs for offset in range(a, b)}


@given(pair_lists)
def test_runs_are_maximal(pairs: list[tuple[int, int]]) -> None:
    # Invariant 1 of `runs`.
    runs = OffsetRuns.of(pairs)

    assert _members(runs) == _members(pairs)
    assert all(a < b for a, b in runs)
    assert all(one[1] < other[0] for one, other in pairwise(runs))


@given(pair_lists)
def test_the_measures_are_those_of_the_set(pairs: list[tuple[int, int]]) -> None:
    runs, members = OffsetRuns.of(pairs), _members(pairs)

    assert runs.count == len(members)
    assert len(runs) == len(list(runs))
    assert bool(runs) == bool(members)
    assert runs.first_offset == min(members, default=None)
    assert runs.last_offset == max(members, default=None)


@given(offset_runs, small_offsets)
def test_membership_is_that_of_the_set(runs: OffsetRuns, offset: int) -> None:
    assert (offset in runs) == (offset in _members(runs))


@given(offset_runs, offset_runs)
def test_the_algebra_is_that_of_sets(one: OffsetRuns, other: OffsetRuns) -> None:
    a, b = _members(one), _members(other)

    assert _members(one.union(other)) == a | b
    assert _members(one.intersection(other)) == a & b
    assert _members(one.difference(other)) == a - b


@given(offset_runs, small_offsets, small_offsets)
def test_clipping_and_complement_partition_the_interval(
    runs: OffsetRuns, lower: int, upper: int
) -> None:
    members, interval = _members(runs), set(range(lower, upper))

    assert _members(runs.clipped(lower, upper)) == members & interval
    assert _members(runs.complement(lower, upper)) == interval - members


@given(offset_runs, offset_runs)
def test_equal_is_who_holds_the_same(one: OffsetRuns, other: OffsetRuns) -> None:
    assert (one == other) == (_members(one) == _members(other))
    assert hash(one) == hash(OffsetRuns.of(reversed(list(one))))


def test_equality_with_something_else_is_false() -> None:
    assert OffsetRuns() != [(0, 1)]


def test_empty_pairs_count_for_nothing() -> None:
    assert OffsetRuns.of([(3, 3), (5, 4)]) == OffsetRuns()
    assert OffsetRuns.of([(0, 2), (2, 4)]) == OffsetRuns.of([(0, 4)])


def test_the_representation_makes_the_runs_again() -> None:
    assert repr(OffsetRuns.of([(0, 2), (5, 6)])) == "OffsetRuns.of([(0, 2), (5, 6)])"


def test_a_long_list_is_cut_and_says_so() -> None:
    runs = OffsetRuns.of((number, number + 1) for number in range(0, 20, 2))

    assert runs.described() == "0, 2, 4, 6, 8 and 5 more runs"
    assert OffsetRuns.of([(0, 3)]).described() == "[0, 3)"


def test_ten_million_dense_offsets_are_one_run() -> None:
    runs = OffsetRuns.of((start, start + 100_000) for start in range(0, 10_000_000, 100_000))

    assert (len(runs), runs.count) == (1, 10_000_000)


@given(offset_runs, small_offsets)
def test_offsets_that_come_in_order_are_gathered(runs: OffsetRuns, cut: int) -> None:
    grown, lowest, highest = GrowingRuns(), runs.first_offset or 0, (runs.last_offset or 0) + 1
    grown.add(runs.clipped(lowest, cut))
    below = grown.taken()
    grown.add(runs.clipped(max(lowest, cut), highest))

    assert below == runs.clipped(lowest, cut)
    assert grown.taken() == runs


def test_offsets_that_come_out_of_order_are_refused() -> None:
    grown = GrowingRuns()
    grown.add(OffsetRuns.of([(5, 8)]))

    with pytest.raises(ValueError, match="7"):
        grown.add(OffsetRuns.of([(7, 9)]))


def test_memory_is_that_of_two_machine_arrays() -> None:
    count = 50_000
    tracemalloc.start()
    try:
        runs = OffsetRuns.of((start, start + 1) for start in range(0, 2 * count, 2))
        missing = runs.complement(0, 2 * count)
        nothing = runs.intersection(missing)
        everything = runs.union(missing)
        rest = everything.difference(runs)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (nothing, len(everything), rest) == (OffsetRuns(), 1, missing)
    # A set is 16 bytes a run; a tuple of two numbers would be 120.
    assert peak < 6 * 16 * count


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
