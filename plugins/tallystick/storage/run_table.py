"""Runs of offsets of many partitions as columns of numbers: how rows become exact offset sets.

Nothing here loops over rows or runs in Python.

1. A row is in exactly one run of `runs_in`, so runs carry doubled rows twice.
2. Memory is that of the runs: dense files give a handful, whatever their number of rows.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.offsets.runs import OffsetRuns

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def numbers_of(column: Any) -> Any:
    """An Arrow array of integers as it lies in memory; raises ArrowException for a null."""
    # `to_numpy` imports pandas, which takes longer than reading a small batch back.
    return np.from_dlpack(column)


@dataclass(frozen=True, slots=True, eq=False)
class RunTable:
    """Runs [from, until) of offsets, each of one partition; columns of equal length."""

    partitions: Numbers
    from_offsets: Numbers
    until_offsets: Numbers

    def __len__(self) -> int:
        return len(self.partitions)

    @classmethod
    def empty(cls) -> RunTable:
        """No runs."""
        return cls(*(np.empty(0, np.int64) for _ in range(3)))

    @classmethod
    def joined(cls, tables: Sequence[RunTable]) -> RunTable:
        """The runs of all tables, one after the other."""
        if not tables:
            return cls.empty()
        return cls(
            np.concatenate([each.partitions for each in tables]),
            np.concatenate([each.from_offsets for each in tables]),
            np.concatenate([each.until_offsets for each in tables]),
        )

    def by_partition(self) -> Mapping[int, OffsetRuns]:
        """The runs of each partition, for a table that is sorted, disjoint and maximal."""
        bounds = [*_group_starts(self.partitions).tolist(), len(self)]
        return {
            int(self.partitions[a]): OffsetRuns(
                _machine_array(self.from_offsets[a:b]), _machine_array(self.until_offsets[a:b])
            )
            for a, b in pairwise(bounds)
        }


def runs_in(partitions: NDArray[np.integer], offsets: Numbers) -> RunTable:
    """The rows as runs, in their order: a run ends where the next row isn't one further."""
    if not len(offsets):
        return RunTable.empty()
    ends = np.flatnonzero((offsets[1:] != offsets[:-1] + 1) | (partitions[1:] != partitions[:-1]))
    firsts = np.concatenate((np.zeros(1, ends.dtype), ends + 1))
    lasts = np.concatenate((ends, np.full(1, len(offsets) - 1, ends.dtype)))
    return RunTable(partitions[firsts].astype(np.int64), offsets[firsts], offsets[lasts] + 1)


def swept(runs: RunTable) -> tuple[RunTable, RunTable]:
    """Offsets in one run or more, and offsets in two or more; both sorted, disjoint, maximal."""
    if not len(runs):
        return runs, runs
    ordered = _sorted(runs)
    partitions, starts, untils = (
        ordered.partitions,
        ordered.from_offsets,
        ordered.until_offsets,
    )
    is_same = partitions[1:] == partitions[:-1]
    if not np.any(is_same & (starts[1:] < untils[:-1])):
        is_first = np.concatenate(([True], ~is_same | (starts[1:] != untils[:-1])))
        is_last = np.concatenate((is_first[1:], [True]))
        merged = RunTable(partitions[is_first], starts[is_first], untils[is_last])
        return merged, RunTable.empty()
    return _swept_by_depth(ordered)


def _swept_by_depth(runs: RunTable) -> tuple[RunTable, RunTable]:
    """The same for runs that overlap: how many of them cover each stretch between two bounds."""
    partitions = np.concatenate((runs.partitions, runs.partitions))
    positions = np.concatenate((runs.from_offsets, runs.until_offsets))
    steps = np.concatenate((np.ones(len(runs), np.int64), np.full(len(runs), -1, np.int64)))
    order = np.lexsort((positions, partitions))
    partitions, positions, steps = partitions[order], positions[order], steps[order]
    is_last = np.concatenate(
        ((partitions[1:] != partitions[:-1]) | (positions[1:] != positions[:-1]), [True])
    )
    # Every partition's steps sum up to zero, so one running sum serves all of them.
    depths = np.cumsum(steps)[is_last]
    bounds = partitions[is_last], positions[is_last]
    return _covered(*bounds, depths >= 1), _covered(*bounds, depths >= 2)


def _covered(partitions: Numbers, positions: Numbers, is_inside: Flags) -> RunTable:
    """The stretches behind those bounds that are inside, neighbours joined."""
    was_inside = np.concatenate(([False], is_inside[:-1]))
    opens, closes = is_inside & ~was_inside, was_inside & ~is_inside
    return RunTable(partitions[opens], positions[opens], positions[closes])


@dataclass(frozen=True, slots=True, eq=False)
class SliceTable:
    """One file holds this of each partition; columns have equal length."""

    partitions: Numbers
    first_offsets: Numbers
    last_offsets: Numbers
    record_counts: Numbers

    @classmethod
    def of(cls, runs: RunTable) -> SliceTable:
        """The slices of these runs, doubled rows counted twice."""
        return cls(
            runs.partitions,
            runs.from_offsets,
            runs.until_offsets - 1,
            runs.until_offsets - runs.from_offsets,
        )._grouped()

    @classmethod
    def joined(cls, tables: Iterable[SliceTable]) -> SliceTable:
        """The slices of all tables as one."""
        columns = [
            (each.partitions, each.first_offsets, each.last_offsets, each.record_counts)
            for each in tables
        ]
        if not columns:
            return cls(*(np.empty(0, np.int64) for _ in range(4)))
        return cls(*(np.concatenate(column) for column in zip(*columns, strict=True)))._grouped()

    def _grouped(self) -> SliceTable:
        if not len(self.partitions):
            return self
        order = np.argsort(self.partitions, kind="stable")
        partitions = self.partitions[order]
        starts = _group_starts(partitions)
        return SliceTable(
            partitions[starts],
            np.minimum.reduceat(self.first_offsets[order], starts),
            np.maximum.reduceat(self.last_offsets[order], starts),
            np.add.reduceat(self.record_counts[order], starts),
        )

    def to_slices(self) -> tuple[FileSlice, ...]:
        """The slices as values, by partition."""
        columns = (self.partitions, self.first_offsets, self.last_offsets, self.record_counts)
        return tuple(
            FileSlice(*row) for row in zip(*(each.tolist() for each in columns), strict=True)
        )


def _sorted(runs: RunTable) -> RunTable:
    """The runs by partition and start; files are usually written in this order already."""
    partitions, starts = runs.partitions, runs.from_offsets
    is_in_order = (partitions[1:] > partitions[:-1]) | (
        (partitions[1:] == partitions[:-1]) & (starts[1:] >= starts[:-1])
    )
    if np.all(is_in_order):
        return runs
    order = np.lexsort((starts, partitions))
    return RunTable(partitions[order], starts[order], runs.until_offsets[order])


def _group_starts(values: Numbers) -> NDArray[np.intp]:
    """Finds where in a sorted column each group of equal values begins."""
    if not len(values):
        return np.empty(0, np.intp)
    return np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))


def _machine_array(values: Numbers) -> array[int]:
    numbers = array("q")
    numbers.frombytes(values.tobytes())
    return numbers
