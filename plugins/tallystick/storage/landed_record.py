"""One landed row, for the comparison with what the broker serves at the same place."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from tallystick.domain.record_hash import record_hash
from tallystick.errors import FileMissing, ManifestMismatch
from tallystick.ports.file_store import StoredEntry
from tallystick.storage.parquet_file import CONTENT, COORDINATES, EXPECTED, LandedParquet
from tallystick.storage.read_back import ROWS_AT_A_TIME, RangeReader

BYTES_AT_A_TIME: Final = 16 << 20
PER_MILLISECOND: Final = {"ms": 1, "us": 1_000, "ns": 1_000_000}


def landed_record_hash(
    store: RangeReader, directory: str, file_name: str, partition: int, offset: int
) -> bytes:
    """`record_hash` over the row of this place, its timestamp in milliseconds.

    Raises FileMissing without the file, ManifestMismatch without the row. Of its row group the
    content columns are fetched once and decoded piece by piece.
    """
    path = f"{directory}/{file_name}"
    entry = _entry(store, directory, file_name)
    file = LandedParquet(
        path, lambda at, length: store.read_range(path, at, length), entry.length_bytes
    )
    found = _place(file, partition, offset)
    if found is None:
        raise ManifestMismatch(path, f"a row of partition {partition}, offset {offset}", "none")
    row = _row(file, *found)
    return record_hash(
        partition=partition,
        offset=offset,
        timestamp_ms=_milliseconds(path, row.column("timestamp")),
        key=row.column("key")[0].as_py(),
        value=row.column("value")[0].as_py(),
        headers=[(each["key"], each["value"]) for each in row.column("headers")[0].as_py() or ()],
    )


def _entry(store: RangeReader, directory: str, file_name: str) -> StoredEntry:
    for entry in store.entries(directory):
        if entry.name == file_name:
            return entry
    raise FileMissing(f"{directory}/{file_name}")


def _place(file: LandedParquet, partition: int, offset: int) -> tuple[int, int] | None:
    """Row group and row in it; None if the file doesn't hold the offset."""
    for row_group in range(file.metadata.num_row_groups):
        if not (
            file.may_hold(row_group, "partition", partition)
            and file.may_hold(row_group, "offset", offset)
        ):
            continue
        before = 0
        for batch in file.batches(row_group, COORDINATES, most_rows=ROWS_AT_A_TIME):
            partitions, offsets = (batch.column(name).to_numpy() for name in COORDINATES)
            rows = np.flatnonzero((partitions == partition) & (offsets == offset))
            if len(rows):
                return row_group, before + int(rows[0])
            before += batch.num_rows
    return None


def _row(file: LandedParquet, row_group: int, row: int) -> pa.RecordBatch:
    """The content columns of one row."""
    most_rows = max(1, int(BYTES_AT_A_TIME / max(1.0, file.bytes_per_row(row_group))))
    before = 0
    for batch in file.batches(row_group, CONTENT, most_rows=most_rows):
        if row < before + batch.num_rows:
            return batch.slice(row - before, 1)
        before += batch.num_rows
    raise ManifestMismatch(file.path, EXPECTED, f"no row {row} in row group {row_group}")


def _milliseconds(path: str, column: Any) -> int:
    if not pa.types.is_timestamp(column.type) or column.null_count:
        raise ManifestMismatch(path, EXPECTED, f"a timestamp of type {column.type}")
    return int(column.cast(pa.int64())[0].as_py()) // PER_MILLISECOND[column.type.unit]
