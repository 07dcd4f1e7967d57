"""Builds Parquet files with the landed schema, whole and damaged."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

Headers = Sequence[tuple[str, bytes | None]]

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


@dataclass(frozen=True)
class Row:
    """One landed row."""

    partition: int | None
    offset: int | None
    timestamp_ms: int = 1_790_000_000_000
    key: bytes | None = b"k"
    value: bytes | None = b"v"
    headers: Headers | None = None


def rows_of(ranges: Mapping[int, Iterable[int]]) -> list[Row]:
    """Rows of these offsets by partition, in this order."""
    return [Row(partition, offset) for partition, offsets in ranges.items() for offset in offsets]


def table_of(rows: Sequence[Row], topic: str = "orders") -> pa.Table:
    return pa.table(
        {
            "topic": [topic] * len(rows),
            "partition": [row.partition for row in rows],
            "offset": [row.offset for row in rows],
            "timestamp": pa.array([row.timestamp_ms * 1000 for row in rows], pa.int64()).cast(
                pa.timestamp("us", tz="UTC")
            ),
            "timestamp_type": [0] * len(rows),
            "key": [row.key for row in rows],
            "value": [row.value for row in rows],
            "headers": [
                None if row.headers is None else [{"key": k, "value": v} for k, v in row.headers]
                for row in rows
            ],
        },
        schema=SCHEMA,
    )


def parquet_of(rows: Sequence[Row], *, rows_per_group: int = 1_000_000, **options: object) -> bytes:
    """A file of these rows; pages carry checksums as Spark's do."""
    return parquet_bytes(table_of(rows), rows_per_group=rows_per_group, **options)


def parquet_bytes(table: pa.Table, *, rows_per_group: int = 1_000_000, **options: object) -> bytes:
    buffer = io.BytesIO()
    settings = {"compression": "zstd", "write_page_checksum": True, **options}
    pq.write_table(table, buffer, row_group_size=rows_per_group, **settings)
    return buffer.getvalue()


def with_flipped_byte(content: bytes, column: str) -> bytes:
    """The file with one bit of the column's last page turned over."""
    group = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0)
    chunk = next(
        group.column(leaf)
        for leaf in range(group.num_columns)
        if group.column(leaf).path_in_schema.split(".")[0] == column
    )
    start = min(filter(None, (chunk.data_page_offset, chunk.dictionary_page_offset)))
    place = start + chunk.total_compressed_size - 3
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]
