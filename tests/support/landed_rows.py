"""Parquet files with the landed schema, row by row, whole and damaged, and what is read of them."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tallystick.domain.rows.fingerprint import EMPTY, Fingerprint
from tallystick.domain.rows.row_hash import row_hash
from tests.support.scripted_broker import LANDED_SCHEMA


class Row(NamedTuple):
    """One landed row."""

    partition: int | None
    offset: int | None
    timestamp_micros: int = 1_790_000_000_000_000
    timestamp_type: int = 0
    key: bytes | None = b"k"
    value: bytes | None = b"v"
    headers: Sequence[tuple[str, bytes | None]] | None = None


def a_row(offset: int, *, partition: int = 0, value: bytes | None = b"v", **more: Any) -> Row:
    """A row whose time tells it from those beside it; it has no key unless one is given."""
    kept = {"timestamp_micros": 1_793_000_000_000_000 + offset, "key": None} | more
    return Row(partition, offset, value=value, **kept)


def rows_of(ranges: Mapping[int, Iterable[int]]) -> list[Row]:
    """Rows of these offsets by partition, in this order."""
    return [Row(partition, offset) for partition, offsets in ranges.items() for offset in offsets]


def fingerprint_of(rows: Iterable[Any]) -> Fingerprint:
    """What a full read must say of the rows."""
    return sum(
        (Fingerprint.of_row(row.offset, row_hash(**row._asdict())) for row in rows), start=EMPTY
    )


def table_of(rows: Iterable[Row]) -> pa.Table:
    """The rows with the landed schema."""
    documents = []
    for row in rows:
        headers = row.headers and [{"key": key, "value": value} for key, value in row.headers]
        columns = ("orders", *row[:-1], headers)
        documents.append(dict(zip(LANDED_SCHEMA.names, columns, strict=True)))
    return pa.Table.from_pylist(documents, schema=LANDED_SCHEMA)


def parquet_of(rows: Iterable[Row], **options: object) -> bytes:
    """A file of these rows; pages carry checksums as Spark's do."""
    return parquet_bytes(table_of(rows), **options)


def parquet_bytes(table: pa.Table, **options: object) -> bytes:
    """The same of a table."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **{"compression": "zstd", "write_page_checksum": True, **options})
    return buffer.getvalue()


def write(path: Path, rows: Iterable[Row], **options: object) -> Path:
    """Makes the file, and the directory that it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(parquet_of(rows, **options))
    return path


def with_flipped_byte(content: bytes, column: str) -> bytes:
    """The file with one bit of the column's last page turned over, among what is compressed."""
    group = pq.ParquetFile(io.BytesIO(content)).metadata.row_group(0)
    chunk = next(
        group.column(leaf)
        for leaf in range(group.num_columns)
        if group.column(leaf).path_in_schema.split(".")[0] == column
    )
    start = min(filter(None, (chunk.data_page_offset, chunk.dictionary_page_offset)))
    place = start + chunk.total_compressed_size - 3
    return content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :]


def damage(path: Path, column: str) -> None:
    """Turns over that bit in a file that lies there."""
    path.write_bytes(with_flipped_byte(path.read_bytes(), column))
