"""Hypothesis strategies for ranges and runs, small enough to be compared with sets of integers."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import strategies as st

from tallystick.domain.ranges import OffsetRange
from tallystick.domain.runs import OffsetRuns
from tests.support.builders import a_range

REACH = 30
"""No offset is drawn at or above this."""

small_offsets = st.integers(0, REACH - 1)
pairs = st.tuples(small_offsets, st.integers(1, 8)).map(lambda drawn: (drawn[0], sum(drawn)))
pair_lists = st.lists(pairs, max_size=8)


@st.composite
def offset_ranges(draw: st.DrawFn, *, partitions: int = 2) -> OffsetRange:
    """A range of one of a few partitions."""
    from_offset, until_offset = draw(pairs)
    return a_range(from_offset, until_offset, partition=draw(st.integers(0, partitions - 1)))


range_lists = st.lists(offset_ranges(), max_size=8)
offset_runs = pair_lists.map(OffsetRuns.of)


def offsets_in(ranges: Iterable[OffsetRange]) -> set[tuple[int, int]]:
    """Every (partition, offset) of the ranges, once."""
    return {
        (each.partition.partition, offset)
        for each in ranges
        for offset in range(each.from_offset, each.until_offset)
    }
