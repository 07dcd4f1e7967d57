"""A few slices of a landed file, record by record, for the comparison with a second reader.

Of a row group the coordinates are read whole, for they say where the slices are; of the content
only the pages that hold them, where the file says which these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rows.second_read import SeenRecord
from tallystick.storage.landed_record import milliseconds, opened, rows_at_a_time
from tallystick.storage.parquet_file import COORDINATES, LandedParquet
from tallystick.storage.read_back import ROWS_AT_A_TIME, RangeReader
from tallystick.storage.run_table import numbers_of

_PLAIN: Final = (*COORDINATES, "timestamp_type", "key", "value")
_COLUMNS: Final = (*_PLAIN, "timestamp", "headers")
_Headers: TypeAlias = Sequence[Sequence[Mapping[str, Any]] | None]


def landed_slices(
    store: RangeReader,
    directory: str,
    file_name: str,
    slices: Sequence[OffsetRange],
    *,
    by_pages: bool,
) -> Iterator[tuple[int, SeenRecord]]:
    """Partition and record of each row that the slices hold, in the order of the file.

    With `by_pages` the rest of the file is not read, where that is possible; without it whole row
    groups are, which is the plainer way. Raises FileMissing, and ManifestMismatch for a file that
    is not as it was landed.
    """
    file = opened(store, directory, file_name)
    for row_group in range(file.metadata.num_row_groups):
        runs = _runs(file, row_group, slices)
        if not runs:
            continue
        cut = file.by_pages(row_group, _COLUMNS, runs) if by_pages else None
        if cut is None:
            for batch in _whole(file, row_group, runs):
                columns = {name: batch.column(name) for name in _COLUMNS}
                yield from _records(file.path, columns, columns["headers"].to_pylist())
        else:
            yield from _records(file.path, cut, _headers(cut))


def _runs(
    file: LandedParquet, row_group: int, slices: Sequence[OffsetRange]
) -> list[tuple[int, int]]:
    """The rows [from, until) of a row group that the slices hold, as runs in their order."""
    wanted = [
        each
        for each in slices
        if file.may_hold(row_group, "partition", each.partition.partition)
        and file.may_meet(row_group, "offset", each.from_offset, each.until_offset)
    ]
    if not wanted:
        return []
    by_partition: dict[int, list[OffsetRange]] = {}
    for each in wanted:
        by_partition.setdefault(each.partition.partition, []).append(each)
    found, before = [], 0
    for batch in file.batches(row_group, COORDINATES, most_rows=ROWS_AT_A_TIME):
        partitions, offsets = (numbers_of(batch.column(name)) for name in COORDINATES)
        for number, theirs in by_partition.items():
            rows = np.flatnonzero(partitions == number)
            held = offsets[rows]
            found += [
                rows[(held >= each.from_offset) & (held < each.until_offset)] + before
                for each in theirs
            ]
        before += batch.num_rows
    rows = np.unique(np.concatenate(found))
    if not len(rows):
        return []
    breaks = np.flatnonzero(np.diff(rows) > 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(rows, breaks)]


def _whole(
    file: LandedParquet, row_group: int, runs: Sequence[tuple[int, int]]
) -> Iterator[pa.RecordBatch]:
    before = 0
    for batch in file.batches(row_group, _COLUMNS, most_rows=rows_at_a_time(file, row_group)):
        until = before + batch.num_rows
        for run in runs:
            first, last = max(run[0], before), min(run[1], until)
            if first < last:
                yield batch.slice(first - before, last - first)
        before = until


def _headers(columns: Mapping[str, Any]) -> _Headers:
    """Names and values put together again: their pages begin at different rows."""
    [names, values] = [columns[each] for each in columns if each.startswith("headers.")]
    return [
        None if keys is None else [{**a, **b} for a, b in zip(keys, contents, strict=True)]
        for keys, contents in zip(names.to_pylist(), values.to_pylist(), strict=True)
    ]


def _records(
    path: str, columns: Mapping[str, Any], all_headers: _Headers
) -> Iterator[tuple[int, SeenRecord]]:
    times = milliseconds(path, columns["timestamp"])
    partitions, offsets, kinds, keys, values = (columns[name].to_pylist() for name in _PLAIN)
    for partition, offset, time, kind, key, value, headers in zip(
        partitions, offsets, times, kinds, keys, values, all_headers, strict=True
    ):
        yield (
            partition,
            SeenRecord.of(
                partition=partition,
                offset=offset,
                timestamp_ms=time,
                timestamp_type=kind,
                key=key,
                value=value,
                headers=[(each["key"], each["value"]) for each in headers or ()],
            ),
        )
