"""Rows of a landed file: the file opened, and of its rows those that slices of offsets hold.

Coordinates say where the slices are. Of them only the pages are read that may hold a slice, and of
the content only those that do, where the file says which these are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from tallystick.domain.offsets.ranges import OffsetRange, union_of
from tallystick.errors import FileMissing, ManifestMismatch
from tallystick.storage.parquet_file import COORDINATES, EXPECTED, LandedParquet
from tallystick.storage.read_back import ROWS_AT_A_TIME, RangeReader
from tallystick.storage.run_table import Numbers, numbers_of

BYTES_AT_A_TIME: Final = 16 << 20
_PER_MILLISECOND: Final = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_PLAIN: Final = ("timestamp_type", "key", "value")
_COLUMNS: Final = (*_PLAIN, "timestamp", "headers")
_Headers: TypeAlias = Sequence[Sequence[Mapping[str, Any]] | None]


class LandedRow(NamedTuple):
    """One record as it was landed."""

    partition: int
    offset: int
    timestamp_ms: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class _Rows(NamedTuple):
    """Rows of a row group, in its order."""

    numbers: Numbers
    """The first row's is 0."""
    partitions: Numbers
    offsets: Numbers

    def taken(self, which: Any) -> _Rows:
        return _Rows(*(column[which] for column in self))


def opened(store: RangeReader, directory: str, file_name: str) -> LandedParquet:
    """The landed file of this name; raises FileMissing, and ManifestMismatch for another one."""
    path = f"{directory}/{file_name}"
    entry = store.status(path)
    if entry is None:
        raise FileMissing(path)
    return LandedParquet(
        path, lambda at, length: store.read_range(path, at, length), entry.length_bytes
    )


def rows_at_a_time(file: LandedParquet, row_group: int) -> int:
    """How many rows of the row group are decoded at a time; at least one."""
    return max(1, int(BYTES_AT_A_TIME / max(1.0, file.bytes_per_row(row_group))))


def milliseconds(path: str, column: Any) -> list[int]:
    """The instants of a column of timestamps; raises ManifestMismatch for any other column."""
    if not pa.types.is_timestamp(column.type) or column.null_count:
        raise ManifestMismatch(path, EXPECTED, f"a timestamp of type {column.type}")
    unit = _PER_MILLISECOND[column.type.unit]
    return [each // unit for each in column.view(pa.int64()).to_pylist()]


def rows_of_slices(
    file: LandedParquet, slices: Sequence[OffsetRange], *, by_pages: bool
) -> Iterator[LandedRow]:
    """Each row that the slices hold, in the order of the file.

    With `by_pages` the rest of the file is not read, where that is possible; without it whole row
    groups are, which is the plainer way. Raises ManifestMismatch for a file that is not as it was
    landed.
    """
    for row_group in range(file.metadata.num_row_groups):
        wanted = [
            each
            for each in slices
            if file.may_hold(row_group, "partition", each.partition.partition)
            and file.may_meet(row_group, "offset", each.from_offset, each.until_offset)
        ]
        rows = _held(_coordinates(file, row_group, wanted, by_pages=by_pages), wanted)
        if not len(rows.numbers):
            continue
        cut = file.by_pages(row_group, _COLUMNS, _runs(rows.numbers)) if by_pages else None
        if cut is None:
            for theirs, batch in _whole(file, row_group, rows):
                columns = {name: batch.column(name) for name in _COLUMNS}
                yield from _records(file.path, theirs, columns, columns["headers"].to_pylist())
        else:
            yield from _records(file.path, rows, cut, _headers(cut))


def _coordinates(
    file: LandedParquet, row_group: int, wanted: Sequence[OffsetRange], *, by_pages: bool
) -> Iterator[_Rows]:
    """All rows that may belong to the slices, and others."""
    if not wanted:
        return
    bounds = [(each.from_offset, each.until_offset) for each in wanted]
    runs = file.rows_meeting(row_group, "offset", bounds) if by_pages else None
    cut = file.by_pages(row_group, COORDINATES, runs) if runs else None
    if runs and cut is not None:
        numbers = np.concatenate([np.arange(*each) for each in runs])
        yield _Rows(numbers, *(numbers_of(cut[name]) for name in COORDINATES))
    elif runs != []:
        before = 0
        for batch in file.batches(row_group, COORDINATES, most_rows=ROWS_AT_A_TIME):
            numbers = np.arange(before, before + batch.num_rows)
            yield _Rows(numbers, *(numbers_of(batch.column(name)) for name in COORDINATES))
            before += batch.num_rows


def _held(pieces: Iterable[_Rows], wanted: Sequence[OffsetRange]) -> _Rows:
    """The rows that the slices hold."""
    bounds: dict[int, list[tuple[int, int]]] = {}
    for each in union_of(wanted):
        bounds.setdefault(each.partition.partition, []).append(
            (each.from_offset, each.until_offset)
        )
    found = [_Rows(*[np.empty(0, np.int64)] * 3)]
    for piece in pieces:
        is_held = np.zeros(len(piece.numbers), bool)
        for number, theirs in bounds.items():
            froms, untils = np.array(theirs).T
            nearest = np.searchsorted(froms, piece.offsets, "right") - 1
            is_within = (nearest >= 0) & (piece.offsets < untils[nearest])
            is_held |= is_within & (piece.partitions == number)
        found.append(piece.taken(is_held))
    return _Rows(*(np.concatenate(columns) for columns in zip(*found, strict=True)))


def _runs(numbers: Numbers) -> list[tuple[int, int]]:
    """The rows as runs [from, until) in their order."""
    breaks = np.flatnonzero(np.diff(numbers) > 1) + 1
    return [(int(run[0]), int(run[-1]) + 1) for run in np.split(numbers, breaks) if len(run)]


def _whole(
    file: LandedParquet, row_group: int, rows: _Rows
) -> Iterator[tuple[_Rows, pa.RecordBatch]]:
    """The rows piece by piece, each piece with its columns."""
    before = done = 0
    for batch in file.batches(row_group, _COLUMNS, most_rows=rows_at_a_time(file, row_group)):
        until = before + batch.num_rows
        theirs = rows.numbers[(rows.numbers >= before) & (rows.numbers < until)]
        for first, last in _runs(theirs):
            count = last - first
            yield rows.taken(slice(done, done + count)), batch.slice(first - before, count)
            done += count
        before = until


def _headers(columns: Mapping[str, Any]) -> _Headers:
    """Names and values put together again: their pages begin at different rows."""
    [names, values] = [columns[each] for each in columns if each.startswith("headers.")]
    return [
        None if keys is None else [{**a, **b} for a, b in zip(keys, contents, strict=True)]
        for keys, contents in zip(names.to_pylist(), values.to_pylist(), strict=True)
    ]


def _records(
    path: str, rows: _Rows, columns: Mapping[str, Any], all_headers: _Headers
) -> Iterator[LandedRow]:
    times = milliseconds(path, columns["timestamp"])
    kinds, keys, values = (columns[name].to_pylist() for name in _PLAIN)
    headers = ([(one["key"], one["value"]) for one in each or ()] for each in all_headers)
    places = (rows.partitions.tolist(), rows.offsets.tolist())
    yield from map(LandedRow._make, zip(*places, times, kinds, keys, values, headers, strict=True))
