"""Parquet files with the landed schema, row by row, and what a full read must say of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tallystick.domain.rows.fingerprint import EMPTY, Fingerprint
from tallystick.domain.rows.row_hash import row_hash
from tests.support.scripted_broker import LANDED_SCHEMA

Row = tuple[int, int, int, int, bytes | None, bytes | None, Any]


def a_row(offset: int, *, partition: int = 0, value: bytes | None = b"v", **more: Any) -> Row:
    return (
        partition,
        offset,
        more.get("timestamp", 1_793_000_000_000_000 + offset),
        more.get("timestamp_type", 0),
        more.get("key"),
        value,
        more.get("headers"),
    )


def hash_of(row: Row) -> int:
    partition, offset, timestamp, timestamp_type, key, value, headers = row
    return row_hash(
        partition=partition,
        offset=offset,
        timestamp_micros=timestamp,
        timestamp_type=timestamp_type,
        key=key,
        value=value,
        headers=headers,
    )


def fingerprint_of(rows: Iterable[Row]) -> Fingerprint:
    return sum((Fingerprint.of_row(row[1], hash_of(row)) for row in rows), start=EMPTY)


def write(path: Path, rows: Sequence[Row], **options: Any) -> Path:
    columns: dict[str, list[Any]] = {name: [] for name in LANDED_SCHEMA.names}
    for partition, offset, timestamp, timestamp_type, key, value, headers in rows:
        columns["topic"].append("orders")
        columns["partition"].append(partition)
        columns["offset"].append(offset)
        columns["timestamp"].append(timestamp)
        columns["timestamp_type"].append(timestamp_type)
        columns["key"].append(key)
        columns["value"].append(value)
        columns["headers"].append(
            None if headers is None else [{"key": k, "value": v} for k, v in headers]
        )
    arrays = {
        name: pa.array(values, LANDED_SCHEMA.field(name).type) for name, values in columns.items()
    }
    settings = {"compression": "zstd", "write_page_checksum": True} | options
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(arrays, schema=LANDED_SCHEMA), path, **settings)
    return path


def page_bytes(path: Path, column: str) -> int:
    """A place at the end of the column's last data page, among what is compressed."""
    metadata = pq.ParquetFile(path).metadata.row_group(0)
    [found] = [
        metadata.column(each)
        for each in range(metadata.num_columns)
        if metadata.column(each).path_in_schema == column
    ]
    first = found.dictionary_page_offset or found.data_page_offset
    return int(first + found.total_compressed_size - 3)


def damaged(path: Path, at: int) -> Path:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x10
    path.write_bytes(content)
    return path
