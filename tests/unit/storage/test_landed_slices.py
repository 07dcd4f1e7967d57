"""A few slices of a file: the records that they hold, and what is told of a damaged file."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.rows.second_read import SeenRecord
from tallystick.errors import FileMissing, ManifestMismatch, StorageUnavailable
from tests.support.landed_rows import Row, a_row, damage, parquet_bytes, table_of, write
from tests.support.local_directory import LocalFileStore

HEADERS = (None, [], [("a", b"1")], [("a", None), ("a", b""), ("", b"\xff")])


def rows(count: int, *, partition: int = 0, first: int = 0) -> list[Row]:
    """Every third offset is a hole; keys, values and headers are null in turn."""
    return [
        a_row(
            first + 3 * (n // 2) + n % 2,
            partition=partition,
            value=None if n % 7 == 0 else b"%d " % n + os.urandom(20),
            key=None if n % 3 else b"k%d" % (n % 40),
            headers=HEADERS[n % 4],
            timestamp_type=n % 2,
        )
        for n in range(count)
    ]


ROWS = [*rows(4_000), *rows(3_000, partition=1, first=500)]
GROUPS = {"row_group_size": 2_500}


def seen(row: Row) -> SeenRecord:
    partition, offset, micros, kind, key, value, headers = row
    return SeenRecord.of(
        partition=partition,
        offset=offset,
        timestamp_ms=micros // 1000,
        timestamp_type=kind,
        key=key,
        value=value,
        headers=headers or (),
    )


def a_slice(partition: int, from_offset: int, until_offset: int) -> OffsetRange:
    return OffsetRange(TopicPartition("orders", partition), from_offset, until_offset)


def expected(slices: Sequence[OffsetRange]) -> list[tuple[int, SeenRecord]]:
    return [
        (row[0], seen(row))
        for row in ROWS
        if any(row[0] == each.partition.partition and row[1] in each for each in slices)
    ]


class CountingStore(LocalFileStore):
    fetched = 0

    def read_range(self, path: str, position: int, length: int) -> bytes:
        self.fetched += length
        return super().read_range(path, position, length)


SLICES = [
    [a_slice(0, 0, 8)],
    [a_slice(0, 5_990, 6_000)],
    [a_slice(0, 2, 3)],
    [
        a_slice(0, 3_000, 3_900),
        a_slice(0, 100, 110),
        a_slice(1, 500, 501),
        a_slice(1, 4_999, 9_999),
    ],
    [a_slice(2, 0, 10)],
    [],
]


@pytest.mark.parametrize("slices", SLICES)
@pytest.mark.parametrize(
    "options",
    [
        GROUPS,
        GROUPS | {"write_page_index": True, "data_page_size": 4_000},
        GROUPS | {"data_page_version": "2.0"},
        GROUPS | {"use_dictionary": False, "compression": "snappy"},
    ],
    ids=["plain", "an index", "version 2", "no dictionary"],
)
def test_slices_hold_the_records_that_were_landed(
    tmp_path: Path, options: dict[str, Any], slices: list[OffsetRange]
) -> None:
    store = LocalFileStore(tmp_path)
    write(tmp_path / "d/p.parquet", ROWS, **options)

    assert list(store.landed_slices("/d", "p.parquet", slices)) == expected(slices)


def test_content_is_fetched_of_the_row_groups_that_hold_a_slice_alone(tmp_path: Path) -> None:
    big = [a_row(n, value=os.urandom(2_000)) for n in range(10_000)]
    path = write(tmp_path / "d/p.parquet", big, row_group_size=1_000)
    store = CountingStore(tmp_path)

    found = list(store.landed_slices("/d", "p.parquet", [a_slice(0, 2_000, 2_008)]))

    assert [record.offset for _, record in found] == list(range(2_000, 2_008))
    assert store.fetched < path.stat().st_size / 5


def test_a_file_is_found_without_listing_what_lies_beside_it(tmp_path: Path) -> None:
    class Unlisted(LocalFileStore):
        def entries(self, path: str) -> Any:
            raise AssertionError(path)

    write(tmp_path / "d/p.parquet", ROWS[:10])
    found = list(Unlisted(tmp_path).landed_slices("/d", "p.parquet", [a_slice(0, 0, 4)]))
    assert [record.offset for _, record in found] == [0, 1, 3]


def test_a_damaged_page_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "d/p.parquet", ROWS[:2_000])
    damage(path, "value")
    store = LocalFileStore(tmp_path)
    with pytest.raises(ManifestMismatch):
        list(store.landed_slices("/d", "p.parquet", [a_slice(0, 2_990, 3_000)]))


def test_a_store_that_falls_silent_is_told_as_that(tmp_path: Path) -> None:
    class Silent(LocalFileStore):
        def read_range(self, path: str, position: int, length: int) -> bytes:
            if position + length < (tmp_path / path[1:]).stat().st_size:
                raise StorageUnavailable("scripted", "it is away")
            return super().read_range(path, position, length)

    write(tmp_path / "d/p.parquet", [a_row(n, value=os.urandom(200)) for n in range(10_000)])
    store = Silent(tmp_path)
    for ask in (
        lambda: list(store.landed_slices("/d", "p.parquet", [a_slice(0, 0, 5)])),
        lambda: store.read_back("/d"),
    ):
        with pytest.raises(StorageUnavailable, match="it is away"):
            ask()


def test_a_file_that_is_gone_or_none_is_told(tmp_path: Path) -> None:
    store = LocalFileStore(tmp_path)
    write(tmp_path / "d/p.parquet", ROWS[:10])
    with pytest.raises(FileMissing):
        list(store.landed_slices("/d", "q.parquet", [a_slice(0, 0, 5)]))
    (tmp_path / "d/p.parquet").write_bytes(b"PAR1")
    with pytest.raises(ManifestMismatch):
        list(store.landed_slices("/d", "p.parquet", [a_slice(0, 0, 5)]))


def test_a_file_that_is_cut_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "d/p.parquet", ROWS[:2_000], **GROUPS)
    cut = path.read_bytes()
    path.write_bytes(cut[:-500])
    with pytest.raises(ManifestMismatch):
        list(LocalFileStore(tmp_path).landed_slices("/d", "p.parquet", [a_slice(0, 0, 5)]))


def test_no_flipped_bit_of_a_footer_ends_in_another_error(tmp_path: Path) -> None:
    """Nor in the end of the process: pyarrow ends it for some, if it is asked for statistics."""
    path = write(tmp_path / "d/p.parquet", ROWS[:40], store_schema=False)
    content = path.read_bytes()
    first = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    store, told = LocalFileStore(tmp_path), 0
    asked: list[Callable[[], Any]] = [
        lambda: list(store.landed_slices("/d", "p.parquet", SLICES[0])),
        lambda: list(store.payloads("/d", "p.parquet")),
        lambda: store.landed_record_hash("/d", "p.parquet", 0, 4),
        lambda: store.read_back("/d"),
    ]
    for place in random.Random(1).sample(range(8 * first, 8 * len(content)), 500):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        for ask in asked:
            try:
                ask()
            except ManifestMismatch:
                told += 1
    assert told > 500


def test_a_slice_may_end_where_no_offset_can(tmp_path: Path) -> None:
    write(tmp_path / "d/p.parquet", [a_row(2**63 - 9 + n, timestamp_micros=0) for n in range(9)])
    slices = [a_slice(0, 2**63 - 5, 2**63 + 5)]
    found = LocalFileStore(tmp_path).landed_slices("/d", "p.parquet", slices)
    assert [record.offset for _, record in found] == list(range(2**63 - 5, 2**63))


@pytest.mark.parametrize(
    ("key", "value"),
    [(pa.binary(), pa.binary()), (pa.string(), pa.string()), (pa.int64(), pa.binary())],
)
def test_headers_of_other_types_are_no_landed_ones(tmp_path: Path, key: Any, value: Any) -> None:
    table = table_of([Row(0, 1, headers=[])])
    place = table.schema.get_field_index("headers")
    kind = pa.list_(pa.struct([("key", key), ("value", value)]))
    store = LocalFileStore(tmp_path)
    changed = table.set_column(place, "headers", pa.array([[]], kind))
    store.write("/d/p.parquet", parquet_bytes(changed, write_page_index=True))
    with pytest.raises(ManifestMismatch, match="column 'headers' of type"):
        list(store.landed_slices("/d", "p.parquet", [a_slice(0, 0, 5)]))
    with pytest.raises(ManifestMismatch, match="column 'headers' of type"):
        list(store.payloads("/d", "p.parquet"))


def test_a_header_whose_name_is_no_text_is_told(tmp_path: Path) -> None:
    table = table_of([Row(0, 1)])
    place = table.schema.get_field_index("headers")
    kind = table.schema.field("headers").type
    ends = pa.py_buffer(b"\0\0\0\0\1\0\0\0")
    name = pa.StringArray.from_buffers(1, ends, pa.py_buffer(b"\xff"))
    fields = list(kind.value_type)
    pairs = pa.StructArray.from_arrays([name, pa.array([b""], fields[1].type)], fields=fields)
    column = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), pairs, kind)
    store = LocalFileStore(tmp_path)
    store.write("/d/p.parquet", parquet_bytes(table.set_column(place, "headers", column)))
    with pytest.raises(ManifestMismatch):
        list(store.landed_slices("/d", "p.parquet", [a_slice(0, 0, 5)]))
    with pytest.raises(ManifestMismatch):
        list(store.payloads("/d", "p.parquet"))


@pytest.mark.parametrize(
    ("headers", "words"),
    [([None], "a header that is null"), ([{"key": None, "value": b""}], "without a name")],
)
def test_headers_that_no_record_has_are_told(
    tmp_path: Path, headers: list[Any], words: str
) -> None:
    table = table_of([Row(0, 1)])
    place = table.schema.get_field_index("headers")
    column = pa.array([headers], table.schema.field("headers").type)
    store = LocalFileStore(tmp_path)
    store.write("/d/p.parquet", parquet_bytes(table.set_column(place, "headers", column)))
    with pytest.raises(ManifestMismatch, match=words):
        list(store.landed_slices("/d", "p.parquet", [a_slice(0, 0, 5)]))
    with pytest.raises(ManifestMismatch, match=words):
        list(store.payloads("/d", "p.parquet"))


def test_a_row_without_a_place_is_told(tmp_path: Path) -> None:
    store = LocalFileStore(tmp_path)
    store.write("/d/p.parquet", parquet_bytes(table_of([Row(None, 1), Row(0, 2)])))
    with pytest.raises(ManifestMismatch, match="rows without partition"):
        list(store.landed_slices("/d", "p.parquet", [a_slice(0, 0, 5)]))
