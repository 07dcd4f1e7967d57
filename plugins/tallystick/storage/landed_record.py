"""One landed row, for the comparison with what the broker serves at the same place.

And what every reader of landed rows shares: the file opened, rows in pieces, times in one unit.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from tallystick.domain.rows.record_hash import record_hash
from tallystick.errors import FileMissing, ManifestMismatch
from tallystick.storage.parquet_file import CONTENT, COORDINATES, EXPECTED, LandedParquet
from tallystick.storage.read_back import ROWS_AT_A_TIME, RangeReader
from tallystick.storage.run_table import numbers_of

BYTES_AT_A_TIME: Final = 16 << 20
_PER_MILLISECOND: Final = {"ms": 1, "us": 1_000, "ns": 1_000_000}


def landed_record_hash(
    store: RangeReader, directory: str, file_name: str, partition: int, offset: int
) -> bytes:
    """`record_hash` over the row of this place, its timestamp in milliseconds.

    Raises FileMissing without the file, ManifestMismatch without the row. Of its row group the
    content columns are fetched once and decoded piece by piece.
    """
    file = opened(store, directory, file_name)
    found = _place(file, partition, offset)
    if found is None:
        expected = f"a row of partition {partition}, offset {offset}"
        raise ManifestMismatch(file.path, expected, "none")
    row = _row(file, *found)
    return record_hash(
        partition=partition,
        offset=offset,
        timestamp_ms=milliseconds(file.path, row.column("timestamp"))[0],
        key=row.column("key")[0].as_py(),
        value=row.column("value")[0].as_py(),
        headers=[(each["key"], each["value"]) for each in row.column("headers")[0].as_py() or ()],
    )


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
            partitions, offsets = (numbers_of(batch.column(name)) for name in COORDINATES)
            rows = np.flatnonzero((partitions == partition) & (offsets == offset))
            if len(rows):
                return row_group, before + int(rows[0])
            before += batch.num_rows
    return None


def _row(file: LandedParquet, row_group: int, row: int) -> pa.RecordBatch:
    """The content columns of one row."""
    before = 0
    for batch in file.batches(row_group, CONTENT, most_rows=rows_at_a_time(file, row_group)):
        if row < before + batch.num_rows:
            return batch.slice(row - before, 1)
        before += batch.num_rows
    raise ManifestMismatch(file.path, EXPECTED, f"no row {row} in row group {row_group}")
