"""Rows of a landed file: the file opened, and of its rows those that slices of offsets hold.

Coordinates say where the slices are: those of all row groups are read, and the content of the row
groups alone that hold a slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tallystick.domain.offsets.ranges import OffsetRange, union_of
from tallystick.domain.rows.payload import Payload
from tallystick.domain.rows.record_hash import record_hash
from tallystick.errors import FileMissing, ManifestMismatch
from tallystick.ports.file_store import FileStore
from tallystick.storage.parquet_file import CONTENT, COORDINATES, EXPECTED, LandedParquet
from tallystick.storage.read_back import ROWS_AT_A_TIME
from tallystick.storage.run_table import Numbers

BYTES_AT_A_TIME: Final = 16 << 20
_PER_MILLISECOND: Final = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_PLAIN: Final = ("timestamp_type", "key", "value")
_COLUMNS: Final = (*_PLAIN, "timestamp", "headers")
_LARGEST: Final = 2**63 - 1
_NOWHERE: Final = {"partition": 0, "offset": 0, "timestamp_ms": 0}


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


def opened(store: FileStore, directory: str, file_name: str) -> LandedParquet:
    """The landed file of this name; raises FileMissing, and ManifestMismatch for another one."""
    path = f"{directory}/{file_name}"
    entry = store.status(path)
    if entry is None:
        raise FileMissing(path)
    return LandedParquet(
        path, lambda at, length: store.read_range(path, at, length), entry.length_bytes
    )


def rows_at_a_time(file: LandedParquet, row_group: int) -> int:
    """Says how many rows of the row group are decoded at a time; at least one."""
    return max(1, int(BYTES_AT_A_TIME / max(1.0, file.bytes_per_row(row_group))))


def milliseconds(path: str, column: Any) -> list[int]:
    """The instants of a column of timestamps; raises ManifestMismatch for any other column."""
    if not pa.types.is_timestamp(column.type) or column.null_count:
        raise ManifestMismatch(path, EXPECTED, f"a timestamp of type {column.type}")
    unit = _PER_MILLISECOND[column.type.unit]
    return [each // unit for each in column.view(pa.int64()).to_pylist()]


def rows_of_slices(file: LandedParquet, slices: Sequence[OffsetRange]) -> Iterator[LandedRow]:
    """Each row that the slices hold, in the order of the file.

    Raises ManifestMismatch for a file that is not as it was landed.
    """
    for row_group in range(file.metadata.num_row_groups if slices else 0):
        rows = _held(_coordinates(file, row_group), slices)
        if len(rows.numbers):
            for theirs, batch in _content(file, row_group, rows):
                yield from _records(file, theirs, batch)


def _coordinates(file: LandedParquet, row_group: int) -> Iterator[_Rows]:
    before = 0
    for batch in file.batches(row_group, COORDINATES, most_rows=ROWS_AT_A_TIME):
        numbers = np.arange(before, before + batch.num_rows)
        yield _Rows(numbers, *(file.numbers(name, batch.column(name)) for name in COORDINATES))
        before += batch.num_rows


def _held(pieces: Iterable[_Rows], wanted: Sequence[OffsetRange]) -> _Rows:
    """The rows that the slices hold."""
    bounds: dict[int, list[tuple[int, int]]] = {}
    for each in union_of(wanted):
        last = min(each.until_offset - 1, _LARGEST)
        bounds.setdefault(each.partition.partition, []).append((each.from_offset, last))
    found = [_Rows(*[np.empty(0, np.int64)] * 3)]
    for piece in pieces:
        is_held = np.zeros(len(piece.numbers), bool)
        for number, theirs in bounds.items():
            firsts, lasts = np.array(theirs, np.int64).T
            rows = np.flatnonzero(piece.partitions == number)
            offsets = piece.offsets[rows]
            nearest = np.searchsorted(firsts, offsets, "right") - 1
            is_held[rows] = (nearest >= 0) & (offsets <= lasts[nearest])
        found.append(piece.taken(is_held))
    return _Rows(*(np.concatenate(columns) for columns in zip(*found, strict=True)))


def _content(
    file: LandedParquet, row_group: int, rows: _Rows
) -> Iterator[tuple[_Rows, pa.RecordBatch]]:
    """The rows piece by piece, each with its columns; what comes after them is not decoded."""
    before = done = 0
    for batch in file.batches(row_group, _COLUMNS, most_rows=rows_at_a_time(file, row_group)):
        until = before + batch.num_rows
        here = rows.numbers[done : done + int(np.searchsorted(rows.numbers[done:], until))]
        for run in np.split(here, np.flatnonzero(np.diff(here) > 1) + 1) if len(here) else ():
            theirs = slice(done, done + len(run))
            yield rows.taken(theirs), batch.slice(int(run[0]) - before, len(run))
            done = theirs.stop
        if done == len(rows.numbers):
            return
        before = until


def _records(file: LandedParquet, rows: _Rows, batch: pa.RecordBatch) -> Iterator[LandedRow]:
    columns = {name: batch.column(name) for name in _COLUMNS}
    with file.told():
        headers = columns["headers"].to_pylist()
    times = milliseconds(file.path, columns["timestamp"])
    kinds, keys, values = (columns[name].to_pylist() for name in _PLAIN)
    places = (rows.partitions.tolist(), rows.offsets.tolist())
    fields = (*places, times, kinds, keys, values, file.headers(headers))
    yield from map(LandedRow._make, zip(*fields, strict=True))


def payloads_of(file: LandedParquet) -> Iterator[tuple[int, Payload]]:
    """The partition and the payload of each row, in the order of the file.

    The hash covers key, value and headers. Memory holds a piece of a row group at a time.
    """
    for row_group in range(file.metadata.num_row_groups):
        most_rows = rows_at_a_time(file, row_group)
        for batch in file.batches(row_group, (*COORDINATES, *CONTENT), most_rows=most_rows):
            yield from _payloads(file, batch)


def _payloads(file: LandedParquet, batch: pa.RecordBatch) -> Iterator[tuple[int, Payload]]:
    places = [file.numbers(name, batch.column(name)).tolist() for name in COORDINATES]
    times = milliseconds(file.path, batch.column("timestamp"))
    with file.told():
        keys, values, headers = (
            batch.column(name).to_pylist() for name in ("key", "value", "headers")
        )
    for partition, offset, time, key, value, named in zip(
        *places, times, keys, values, file.headers(headers), strict=True
    ):
        content = record_hash(**_NOWHERE, key=key, value=value, headers=named)
        yield partition, Payload(offset, time, content)
