"""What every file store says of landed files, and of files that were not landed."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.record_hash import record_hash
from tallystick.errors import FileMissing, ManifestMismatch
from tallystick.ports.file_store import FileStore
from tests.support.landed_rows import (
    Row,
    parquet_bytes,
    parquet_of,
    rows_of,
    table_of,
    with_flipped_byte,
)

pytest_plugins = ["tests.support.store_fixtures"]


def test_a_dense_range_is_one_run(store: FileStore, root: str) -> None:
    store.write(f"{root}/p.parquet", parquet_of(rows_of({3: range(100, 5_000)})))
    found = store.read_back(root)
    assert found.landed == {3: OffsetRuns.of([(100, 5_000)])}
    assert found.doubled == {}
    (file,) = found.files
    assert file.name == "p.parquet"
    assert file.slices == (FileSlice(3, 100, 4_999, 4_900),)
    assert file.checksum == store.checksum(f"{root}/p.parquet")
    status = store.status(f"{root}/p.parquet")
    assert status is not None
    assert file.length_bytes == status.length_bytes


def test_holes_are_where_they_are(store: FileStore, root: str) -> None:
    store.write(
        f"{root}/p.parquet",
        parquet_of(rows_of({0: [0, 1, 5, 6, 9], 7: range(0, 100, 2)}), row_group_size=10),
    )
    found = store.read_back(root)
    assert found.landed == {
        0: OffsetRuns.of([(0, 2), (5, 7), (9, 10)]),
        7: OffsetRuns.of((offset, offset + 1) for offset in range(0, 100, 2)),
    }
    assert found.doubled == {}


@pytest.mark.parametrize("rows_per_group", [3, 1_000])
def test_an_offset_twice_in_a_file_is_found(
    store: FileStore, root: str, rows_per_group: int
) -> None:
    """Also where the two lie in different row groups; equal counts and bounds hide nothing."""
    rows = rows_of({0: [0, 1, 2, 3, 4, 5, 6, 7, 8, 0], 1: [0, 0, 2]})
    store.write(f"{root}/p.parquet", parquet_of(rows, row_group_size=rows_per_group))
    found = store.read_back(root)
    assert found.landed == {0: OffsetRuns.of([(0, 9)]), 1: OffsetRuns.of([(0, 1), (2, 3)])}
    assert found.doubled == {0: OffsetRuns.of([(0, 1)]), 1: OffsetRuns.of([(0, 1)])}
    assert found.files[0].slices == (FileSlice(0, 0, 8, 10), FileSlice(1, 0, 2, 3))


def test_an_offset_twice_across_files_is_found(store: FileStore, root: str) -> None:
    for name, offsets in (("a", range(10)), ("b", range(8, 20)), ("c", [9, 19, 30, 30])):
        store.write(f"{root}/{name}.parquet", parquet_of(rows_of({0: offsets})))
    found = store.read_back(root)
    assert found.landed == {0: OffsetRuns.of([(0, 20), (30, 31)])}
    assert found.doubled == {0: OffsetRuns.of([(8, 10), (19, 20), (30, 31)])}
    assert found.record_count == 26


def test_rows_in_no_order_are_the_same_offsets(store: FileStore, root: str) -> None:
    rows = [Row(offset % 3, offset) for offset in reversed(range(300))]
    store.write(f"{root}/p.parquet", parquet_of(rows, row_group_size=50))
    found = store.read_back(root)
    assert {partition: runs.count for partition, runs in found.landed.items()} == dict.fromkeys(
        range(3), 100
    )
    assert found.doubled == {}


def test_two_thousand_small_partitions_in_one_file(store: FileStore, root: str) -> None:
    ranges = {partition: range(partition, partition + 5) for partition in range(2_000)}
    store.write(f"{root}/p.parquet", parquet_of(rows_of(ranges)))
    found = store.read_back(root)
    assert found.landed == {p: OffsetRuns.of([(p, p + 5)]) for p in range(2_000)}
    assert found.files[0].slices[1_999] == FileSlice(1_999, 1_999, 2_003, 5)


def test_a_file_without_rows_is_a_file(store: FileStore, root: str) -> None:
    store.write(f"{root}/empty.parquet", parquet_of([]))
    found = store.read_back(root)
    assert [(file.name, file.slices) for file in found.files] == [("empty.parquet", ())]
    assert (found.landed, found.doubled, found.record_count) == ({}, {}, 0)


def test_a_directory_without_files_holds_nothing(store: FileStore, root: str) -> None:
    store.write(f"{root}/_SUCCESS", b"")
    found = store.read_back(root)
    assert (found.files, found.landed, found.doubled) == ((), {}, {})


def test_what_readers_skip_is_skipped(store: FileStore, root: str) -> None:
    for name in ("_SUCCESS", "_tally.json", ".p.crc", "_temporary/0/x"):
        store.write(f"{root}/{name}", b"no Parquet")
    store.write(f"{root}/p.parquet", parquet_of(rows_of({0: [1]})))
    assert [file.name for file in store.read_back(root).files] == ["p.parquet"]


@pytest.mark.parametrize("name", ["q.parquet.tmp", "_x=1.parquet", "q.parquet._COPYING_"])
def test_a_landed_file_counts_under_any_name_that_readers_see(
    store: FileStore, root: str, name: str
) -> None:
    store.write(f"{root}/p.parquet", parquet_of(rows_of({0: [1]})))
    store.write(f"{root}/{name}", parquet_of(rows_of({0: [1]})))
    assert store.read_back(root).doubled == {0: OffsetRuns.of([(1, 2)])}


@pytest.mark.parametrize(
    "name", ["q.parquet", "q.parquet.tmp", "_x=1.parquet", "notes.txt", "sub/q.parquet"]
)
@pytest.mark.parametrize("content", [b"", b"PAR1", b"no Parquet, but longer than its footer"])
def test_a_foreign_file_that_readers_see_is_named(
    store: FileStore, root: str, name: str, content: bytes
) -> None:
    store.write(f"{root}/p.parquet", parquet_of(rows_of({0: [1]})))
    store.write(f"{root}/{name}", content)
    with pytest.raises(ManifestMismatch, match=f"{root}/{name.split('/')[0]}: expected a whole"):
        store.read_back(root)


@pytest.mark.parametrize("left_off", [1, 4, 200])
def test_a_truncated_file_is_named(store: FileStore, root: str, left_off: int) -> None:
    store.write(f"{root}/p.parquet", parquet_of(rows_of({0: range(1_000)}))[:-left_off])
    with pytest.raises(ManifestMismatch, match=f"{root}/p.parquet"):
        store.read_back(root)


@pytest.mark.parametrize("column", ["partition", "offset"])
@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_a_flipped_bit_is_noticed(
    store: FileStore, root: str, column: str, compression: str
) -> None:
    rows = [Row(offset % 5, offset * 3) for offset in range(5_000)]
    content = parquet_of(rows, compression=compression, use_dictionary=False)
    store.write(f"{root}/p.parquet", with_flipped_byte(content, column))
    with pytest.raises(ManifestMismatch, match=f"{root}/p.parquet"):
        store.read_back(root)


@pytest.mark.parametrize(
    ("table", "found"),
    [
        (table_of([Row(0, 1)]).drop_columns(["offset"]), "without one column 'offset'"),
        (table_of([Row(0, 1)]).drop_columns(["partition"]), "without one column 'partition'"),
        (pa.table({"partition": pa.array([0], pa.int32()), "offset": ["1"]}), "of type string"),
        (table_of([Row(0, None), Row(0, 1)]), "rows without offset"),
        (table_of([Row(None, 1)]), "rows without partition"),
        (table_of([Row(0, -1)]), "a negative"),
        (table_of([Row(-1, 1)]), "a negative"),
        (table_of([Row(0, 2**63 - 1)]), "a negative"),
    ],
)
def test_a_file_that_no_landing_writes_is_named(
    store: FileStore, root: str, table: pa.Table, found: str
) -> None:
    store.write(f"{root}/p.parquet", parquet_bytes(table))
    with pytest.raises(ManifestMismatch, match=found):
        store.read_back(root)


def test_one_landed_row_has_the_hash_of_its_record(store: FileStore, root: str) -> None:
    row = Row(2, 7, key=None, value=b"v" * 300_000, headers=[("h", None), ("h", b"")])
    rows = [*rows_of({1: range(50), 2: range(7)}), row, Row(2, 8, value=None)]
    store.write(f"{root}/p.parquet", parquet_of(rows, row_group_size=20))
    assert store.landed_record_hash(root, "p.parquet", 2, 7) == record_hash(
        partition=2,
        offset=7,
        timestamp_ms=row.timestamp_micros // 1000,
        key=None,
        value=b"v" * 300_000,
        headers=[("h", None), ("h", b"")],
    )


def test_payloads_are_what_was_sent_wherever_it_lies(store: FileStore, root: str) -> None:
    """The same content has the same hash at another place and time; nulls are not empty."""
    rows = [
        Row(0, 5, timestamp_micros=1_000_000, key=b"k", value=b"v", headers=(("h", b"1"),)),
        Row(1, 9, timestamp_micros=2_000_000, key=b"k", value=b"v", headers=(("h", b"1"),)),
        Row(1, 10, timestamp_micros=2_000_000, key=b"k", value=None),
        Row(1, 11, timestamp_micros=2_000_000, key=b"k", value=b""),
    ]
    store.write(f"{root}/p.parquet", parquet_of(rows, row_group_size=3))
    found = list(store.payloads(root, "p.parquet"))
    assert [(partition, each.offset, each.timestamp_ms) for partition, each in found] == [
        (0, 5, 1_000),
        (1, 9, 2_000),
        (1, 10, 2_000),
        (1, 11, 2_000),
    ]
    first, again, null, empty = (each.content_hash for _, each in found)
    assert first == again
    assert len({first, null, empty}) == 3


def test_payloads_of_what_is_not_there_or_damaged(store: FileStore, root: str) -> None:
    damaged = with_flipped_byte(parquet_of(rows_of({0: range(900)})), "offset")
    store.write(f"{root}/p.parquet", damaged)
    with pytest.raises(ManifestMismatch):
        list(store.payloads(root, "p.parquet"))
    with pytest.raises(FileMissing):
        list(store.payloads(root, "q.parquet"))
