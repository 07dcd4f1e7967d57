from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from tallystick.domain.rows.record_hash import record_hash
from tallystick.errors import ManifestMismatch
from tallystick.storage import landed_rows
from tests.support.landed_rows import Row, parquet_bytes, parquet_of, table_of
from tests.support.local_directory import LocalFileStore

ROWS = [
    Row(0, 5),
    Row(0, 6, timestamp_micros=-1_000, key=None, value=None),
    Row(1, 6, timestamp_micros=9_223_372_036_854_000, key=b"", value=b"", headers=[]),
    Row(1, 7, headers=[("h", b"1"), ("h", None), ("ü", b"")]),
    Row(2, 0, value=b"\x00" * 100_000),
    Row(2, 1, value=b"\xff" * 100_000),
]


def expected(row: Row) -> bytes:
    assert row.partition is not None
    assert row.offset is not None
    return record_hash(
        partition=row.partition,
        offset=row.offset,
        timestamp_ms=row.timestamp_micros // 1000,
        key=row.key,
        value=row.value,
        headers=row.headers or (),
    )


@pytest.mark.parametrize("bytes_at_a_time", [1, landed_rows.BYTES_AT_A_TIME])
@pytest.mark.parametrize("rows_per_group", [1, 4, 100])
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_landed_row_has_the_hash_of_its_record(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    row: Row,
    rows_per_group: int,
    bytes_at_a_time: int,
) -> None:
    monkeypatch.setattr(landed_rows, "BYTES_AT_A_TIME", bytes_at_a_time)
    store = LocalFileStore(tmp_path)
    content = parquet_of(ROWS, row_group_size=rows_per_group)
    store.write("/d/p.parquet", content)
    assert row.partition is not None
    assert row.offset is not None
    found = store.landed_record_hash("/d", "p.parquet", row.partition, row.offset)
    assert found == expected(row)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_the_timestamp_counts_in_milliseconds_whatever_its_unit(tmp_path: Path, unit: str) -> None:
    table = table_of(ROWS[:1])
    place = table.schema.get_field_index("timestamp")
    stamps = table.column("timestamp").cast(pa.timestamp(unit, tz="UTC"))
    store = LocalFileStore(tmp_path)
    store.write("/d/p.parquet", parquet_bytes(table.set_column(place, "timestamp", stamps)))
    assert store.landed_record_hash("/d", "p.parquet", 0, 5) == expected(ROWS[0])


def test_a_row_that_is_not_there(tmp_path: Path) -> None:
    store = LocalFileStore(tmp_path)
    store.write("/d/p.parquet", parquet_of(ROWS))
    with pytest.raises(ManifestMismatch, match="partition 0, offset 7"):
        store.landed_record_hash("/d", "p.parquet", 0, 7)


@pytest.mark.parametrize("column", ["timestamp", "key", "value", "headers"])
def test_a_file_without_a_content_column_is_none_of_ours(tmp_path: Path, column: str) -> None:
    store = LocalFileStore(tmp_path)
    content = parquet_bytes(table_of(ROWS).drop_columns([column]))
    store.write("/d/p.parquet", content)
    with pytest.raises(ManifestMismatch):
        store.landed_record_hash("/d", "p.parquet", 0, 5)
