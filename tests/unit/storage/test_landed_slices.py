"""A few slices of a file, read by pages: the same records as a plain read, for less."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.rows.second_read import SeenRecord
from tallystick.errors import FileMissing, ManifestMismatch
from tallystick.storage.compact_thrift import ThriftStruct, read_struct, written
from tallystick.storage.parquet_pages import footer_of
from tallystick.storage.ranged_file import RangedFile
from tests.support.landed_rows import Row, a_row, damaged, page_bytes, write
from tests.support.local_directory import LocalFileStore
from tests.support.store_files import Row as StoredRow
from tests.support.store_files import parquet_bytes, table_of

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
SMALL_PAGES = {"write_page_index": True, "data_page_size": 4_000, "row_group_size": 2_500}


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
        SMALL_PAGES,
        SMALL_PAGES | {"data_page_version": "2.0"},
        SMALL_PAGES | {"use_dictionary": False, "compression": "snappy"},
        {"row_group_size": 2_500},
    ],
    ids=["pages", "version 2", "no dictionary", "no index"],
)
def test_the_records_of_slices_are_those_of_a_plain_read(
    tmp_path: Path, options: dict[str, Any], slices: list[OffsetRange]
) -> None:
    store = LocalFileStore(tmp_path)
    write(tmp_path / "d/p.parquet", ROWS, **options)

    for by_pages in (True, False):
        found = list(store.landed_slices("/d", "p.parquet", slices, by_pages=by_pages))
        assert found == expected(slices)


def test_only_the_pages_of_a_slice_are_fetched(tmp_path: Path) -> None:
    big = [a_row(n, value=os.urandom(2_000)) for n in range(10_000)]
    sizes = {"data_page_size": 50_000, "write_batch_size": 10}
    path = write(tmp_path / "d/p.parquet", big, write_page_index=True, **sizes)
    store = CountingStore(tmp_path)

    found = list(store.landed_slices("/d", "p.parquet", [a_slice(0, 2_000, 2_008)]))

    assert [record.offset for _, record in found] == list(range(2_000, 2_008))
    assert store.fetched < path.stat().st_size / 5


def test_of_the_coordinates_only_the_pages_that_may_hold_a_slice_are_fetched(
    tmp_path: Path,
) -> None:
    many = [a_row(n, value=None) for n in range(0, 1_200_000, 2)]
    plain = {"compression": "none", "use_dictionary": False, "data_page_size": 100_000}
    path = write(tmp_path / "d/p.parquet", many, write_page_index=True, **plain)
    store = CountingStore(tmp_path)

    found = list(store.landed_slices("/d", "p.parquet", [a_slice(0, 600_001, 600_008)]))

    assert [record.offset for _, record in found] == [600_002, 600_004, 600_006]
    assert store.fetched < path.stat().st_size / 5


def test_a_file_is_found_without_listing_what_lies_beside_it(tmp_path: Path) -> None:
    class Unlisted(LocalFileStore):
        def entries(self, path: str) -> Any:
            raise AssertionError(path)

    write(tmp_path / "d/p.parquet", ROWS[:10])
    found = list(Unlisted(tmp_path).landed_slices("/d", "p.parquet", [a_slice(0, 0, 4)]))
    assert [record.offset for _, record in found] == [0, 1, 3]


def _with_footer(path: Path, change: Callable[[ThriftStruct], None]) -> None:
    """Write the file's footer anew, as `change` leaves it."""
    content = path.read_bytes()
    footer = footer_of(RangedFile(lambda at, size: content[at : at + size], len(content)))
    change(footer)
    body = content[: -8 - int.from_bytes(content[-8:-4], "little")]
    text = written(footer)
    path.write_bytes(b"".join((body, text, len(text).to_bytes(4, "little"), b"PAR1")))


def _with_chunks(path: Path, change: Callable[[ThriftStruct], ThriftStruct]) -> None:
    """Write the file's footer anew, each column chunk as `change` makes it."""

    def changed(footer: ThriftStruct) -> None:
        for group in footer[4].items:
            group[1].items[:] = [change(chunk) for chunk in group[1].items]

    _with_footer(path, changed)


def _named_as_text(footer: ThriftStruct) -> None:
    """The names of headers are text, whatever they hold."""
    elements = footer[2].items
    [place] = [
        number
        for number, each in enumerate(elements)
        if each[4] == b"key" and elements[number - 1][4] == b"element"
    ]
    elements[place].fields[6] = (5, 0)
    elements[place].fields.pop(10, None)
    elements[place].fields = dict(sorted(elements[place].fields.items()))


def test_without_a_column_index_all_coordinates_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "d/p.parquet", ROWS, **SMALL_PAGES)
    _with_chunks(path, lambda chunk: chunk.with_fields(f6=None, f7=None))
    slices = SLICES[3]
    assert list(LocalFileStore(tmp_path).landed_slices("/d", "p.parquet", slices)) == expected(
        slices
    )


def test_a_column_index_that_lies_hides_rows_from_no_plain_read(tmp_path: Path) -> None:
    """A caller who misses a row reads again without pages."""
    path = write(tmp_path / "d/p.parquet", ROWS[:2_000], **SMALL_PAGES | {"row_group_size": 2_000})
    content, chunks = bytearray(path.read_bytes()), []
    _with_chunks(path, lambda chunk: chunks.append(chunk) or chunk)
    [at, length] = next((each[6], each[7]) for each in chunks if each[3][3].items[0] == b"offset")
    index, _ = read_struct(content[at : at + length])
    for values in (index[2], index[3]):
        values.items[:] = [(10**9).to_bytes(8, "little")] * len(values.items)
    assert len(written(index)) == length
    content[at : at + length] = written(index)
    path.write_bytes(content)
    store, slices = LocalFileStore(tmp_path), [a_slice(0, 2_000, 2_004)]

    assert list(store.landed_slices("/d", "p.parquet", slices, by_pages=True)) == []
    assert list(store.landed_slices("/d", "p.parquet", slices, by_pages=False)) == expected(slices)


def test_a_damaged_page_is_told_whichever_way_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "d/p.parquet", ROWS[:2_000], write_page_index=True)
    damaged(path, page_bytes(path, "value"))
    for by_pages in (True, False):
        with pytest.raises(ManifestMismatch):
            list(
                LocalFileStore(tmp_path).landed_slices(
                    "/d", "p.parquet", [a_slice(0, 2_990, 3_000)], by_pages=by_pages
                )
            )


def test_a_file_that_is_gone_or_none_is_told(tmp_path: Path) -> None:
    store = LocalFileStore(tmp_path)
    write(tmp_path / "d/p.parquet", ROWS[:10])
    with pytest.raises(FileMissing):
        list(store.landed_slices("/d", "q.parquet", [a_slice(0, 0, 5)]))
    (tmp_path / "d/p.parquet").write_bytes(b"PAR1")
    with pytest.raises(ManifestMismatch):
        list(store.landed_slices("/d", "p.parquet", [a_slice(0, 0, 5)]))


def test_a_file_that_is_cut_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "d/p.parquet", ROWS[:2_000], **SMALL_PAGES)
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).has_offset_index
    cut = path.read_bytes()
    path.write_bytes(cut[:-500])
    with pytest.raises(ManifestMismatch):
        list(LocalFileStore(tmp_path).landed_slices("/d", "p.parquet", [a_slice(0, 0, 5)]))


@pytest.mark.parametrize("field", [4, 5, 6, 7], ids=["at", "bytes", "bounds at", "their bytes"])
@pytest.mark.parametrize("value", [-1, 0, 10**9, 2**62])
def test_an_index_outside_the_file_is_told_before_it_is_asked_for(
    tmp_path: Path, field: int, value: int
) -> None:
    path = write(tmp_path / "d/p.parquet", ROWS, **SMALL_PAGES)
    _with_chunks(path, lambda chunk: chunk.with_fields(**{f"f{field}": value}))
    store, slices = LocalFileStore(tmp_path), SLICES[3]
    if field in (6, 7) and value == 0:
        assert list(store.landed_slices("/d", "p.parquet", slices)) == expected(slices)
    else:
        with pytest.raises(ManifestMismatch):
            list(store.landed_slices("/d", "p.parquet", slices))
    assert list(store.landed_slices("/d", "p.parquet", slices, by_pages=False)) == expected(slices)


def test_no_flipped_bit_of_footer_or_index_ends_in_another_error(tmp_path: Path) -> None:
    """Nor in the end of the process: pyarrow itself ends it for some of them."""
    sizes = {"write_page_index": True, "data_page_size": 300, "write_batch_size": 10}
    path = write(tmp_path / "d/p.parquet", ROWS[:40], store_schema=False, **sizes)
    content, chunks = path.read_bytes(), []
    _with_chunks(path, lambda chunk: chunks.append(chunk) or chunk)
    first = min(each[field] for each in chunks for field in (4, 6))
    store, told = LocalFileStore(tmp_path), 0
    asked: list[Callable[[], Any]] = [
        lambda: list(store.landed_slices("/d", "p.parquet", SLICES[0], by_pages=True)),
        lambda: list(store.landed_slices("/d", "p.parquet", SLICES[0], by_pages=False)),
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


def test_statistics_that_lie_hide_rows_from_no_plain_read(tmp_path: Path) -> None:
    path = write(tmp_path / "d/p.parquet", ROWS, **SMALL_PAGES)

    def lying(chunk: ThriftStruct) -> ThriftStruct:
        for field in (5, 6):
            if chunk[3][3].items[0] == b"offset":
                chunk[3][12].fields[field] = (8, (10**9).to_bytes(8, "little"))
        return chunk

    _with_chunks(path, lying)
    store, slices = LocalFileStore(tmp_path), SLICES[3]
    assert list(store.landed_slices("/d", "p.parquet", slices, by_pages=True)) == []
    assert list(store.landed_slices("/d", "p.parquet", slices, by_pages=False)) == expected(slices)


def test_a_slice_may_end_where_no_offset_can(tmp_path: Path) -> None:
    write(tmp_path / "d/p.parquet", [a_row(2**63 - 9 + n, timestamp=0) for n in range(9)])
    for by_pages in (True, False):
        found = LocalFileStore(tmp_path).landed_slices(
            "/d", "p.parquet", [a_slice(0, 2**63 - 5, 2**63 + 5)], by_pages=by_pages
        )
        assert [record.offset for _, record in found] == list(range(2**63 - 5, 2**63))


@pytest.mark.parametrize(
    ("key", "value"),
    [(pa.binary(), pa.binary()), (pa.string(), pa.string()), (pa.int64(), pa.binary())],
)
def test_headers_of_other_types_are_no_landed_ones(tmp_path: Path, key: Any, value: Any) -> None:
    table = table_of([StoredRow(0, 1, headers=[])])
    place = table.schema.get_field_index("headers")
    kind = pa.list_(pa.struct([("key", key), ("value", value)]))
    store = LocalFileStore(tmp_path)
    changed = table.set_column(place, "headers", pa.array([[]], kind))
    store.write("/d/p.parquet", parquet_bytes(changed, write_page_index=True))
    for by_pages in (True, False):
        with pytest.raises(ManifestMismatch, match="column 'headers' of type"):
            list(store.landed_slices("/d", "p.parquet", [a_slice(0, 0, 5)], by_pages=by_pages))
    with pytest.raises(ManifestMismatch, match="column 'headers' of type"):
        list(store.payloads("/d", "p.parquet"))


def test_a_header_whose_name_is_no_text_is_told(tmp_path: Path) -> None:
    table = table_of([StoredRow(0, 1)])
    place = table.schema.get_field_index("headers")
    kind = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
    column = pa.array([[{"key": b"\xff", "value": b""}]], kind)
    store = LocalFileStore(tmp_path)
    content = parquet_bytes(table.set_column(place, "headers", column), store_schema=False)
    store.write("/d/p.parquet", content)
    _with_footer(tmp_path / "d/p.parquet", _named_as_text)
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
    table = table_of([StoredRow(0, 1)])
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
    store.write("/d/p.parquet", parquet_bytes(table_of([StoredRow(None, 1), StoredRow(0, 2)])))
    with pytest.raises(ManifestMismatch, match="rows without partition"):
        list(store.landed_slices("/d", "p.parquet", [a_slice(0, 0, 5)]))


def test_a_dictionary_that_the_footer_does_not_name_is_found(tmp_path: Path) -> None:
    """Older writers say where data begin, and mean the dictionary (PARQUET-1850)."""
    path = write(tmp_path / "d/p.parquet", ROWS, **SMALL_PAGES)

    def unnamed(chunk: ThriftStruct) -> ThriftStruct:
        if chunk[3].get(11):
            changed = chunk[3].with_fields(f9=chunk[3][11], f11=None)
            return chunk.with_fields(f3=changed)
        return chunk

    _with_chunks(path, unnamed)
    slices = SLICES[3]
    found = LocalFileStore(tmp_path).landed_slices("/d", "p.parquet", slices)
    assert list(found) == expected(slices)
