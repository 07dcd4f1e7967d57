from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.batches.landed import FileSlice
from tallystick.storage.run_table import RunTable, SliceTable, runs_in, swept

Rows = list[tuple[int, int]]

some_rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 25)), max_size=60)


def table(rows: Rows) -> RunTable:
    return runs_in(
        np.array([p for p, _ in rows], np.int32), np.array([o for _, o in rows], np.int64)
    )


def listed(runs: RunTable) -> list[tuple[int, int, int]]:
    columns = (runs.partitions, runs.from_offsets, runs.until_offsets)
    return list(zip(*(each.tolist() for each in columns), strict=True))


def offsets(runs: RunTable) -> list[tuple[int, int]]:
    return [(p, o) for p, start, until in listed(runs) for o in range(start, until)]


@pytest.mark.parametrize(
    ("rows", "runs"),
    [
        ([], []),
        ([(0, 5)], [(0, 5, 6)]),
        ([(0, 5), (0, 6), (0, 7)], [(0, 5, 8)]),
        ([(0, 5), (0, 5)], [(0, 5, 6), (0, 5, 6)]),
        ([(0, 6), (0, 5)], [(0, 6, 7), (0, 5, 6)]),
        ([(0, 5), (1, 6)], [(0, 5, 6), (1, 6, 7)]),
    ],
)
def test_a_run_ends_where_the_next_row_is_not_one_further(
    rows: Rows, runs: list[tuple[int, int, int]]
) -> None:
    assert listed(table(rows)) == runs


@given(some_rows)
def test_every_row_is_in_exactly_one_run(rows: Rows) -> None:
    assert offsets(table(rows)) == rows


@given(some_rows)
def test_sweeping_tells_once_from_twice(rows: Rows) -> None:
    landed, doubled = swept(table(rows))
    assert offsets(landed) == sorted(set(rows))
    assert offsets(doubled) == sorted({row for row in rows if rows.count(row) > 1})


@given(some_rows)
def test_swept_runs_are_sorted_disjoint_and_maximal(rows: Rows) -> None:
    for runs in swept(table(rows)):
        found = listed(runs)
        for (p, _, until), (q, start, _) in pairwise(found):
            assert (p, until) < (q, start) or p < q


@given(some_rows, some_rows)
def test_slices_of_parts_are_the_slices_of_the_whole(one: Rows, other: Rows) -> None:
    parts = SliceTable.joined([SliceTable.of(table(one)), SliceTable.of(table(other))])
    assert parts.to_slices() == SliceTable.of(table(one + other)).to_slices()


def test_a_slice_counts_doubled_rows_twice() -> None:
    rows = [(1, 9), (0, 4), (0, 2), (0, 4)]
    assert SliceTable.of(table(rows)).to_slices() == (FileSlice(0, 2, 4, 3), FileSlice(1, 9, 9, 1))


@given(some_rows)
def test_runs_by_partition_hold_the_same_offsets(rows: Rows) -> None:
    landed, _ = swept(table(rows))
    assert {
        (partition, offset)
        for partition, runs in landed.by_partition().items()
        for start, until in runs
        for offset in range(start, until)
    } == set(rows)
