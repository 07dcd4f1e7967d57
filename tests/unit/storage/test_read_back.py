"""Reading back against brute force; what both stores promise is in tests/contract."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.domain.batches.landed import FileSlice, LateRows
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.record_hash import record_hash
from tallystick.errors import ManifestMismatch
from tallystick.storage import landed_rows
from tallystick.storage import read_back as module
from tallystick.storage.parquet_file import TAIL_BYTES, RangedFile
from tallystick.storage.run_table import RunTable, SliceTable, runs_in, swept
from tests.support.landed_rows import Row, parquet_bytes, parquet_of, table_of
from tests.support.local_directory import LocalFileStore

Files = list[list[tuple[int, int]]]

some_files: st.SearchStrategy[Files] = st.lists(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30)), max_size=50), max_size=4
)


def expected(rows: list[tuple[int, int]]) -> dict[int, OffsetRuns]:
    return {
        partition: OffsetRuns.of((o, o + 1) for p, o in rows if p == partition)
        for partition in {p for p, _ in rows}
    }


def slices(rows: list[tuple[int, int]]) -> tuple[FileSlice, ...]:
    found = []
    for partition in sorted({p for p, _ in rows}):
        offsets = [o for p, o in rows if p == partition]
        found.append(FileSlice(partition, min(offsets), max(offsets), len(offsets)))
    return tuple(found)


@pytest.mark.parametrize("most_loose_runs", [0, module.MOST_LOOSE_RUNS])
@settings(max_examples=80)
@given(files=some_files, rows_per_group=st.integers(1, 20))
def test_reading_back_equals_brute_force(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    most_loose_runs: int,
    files: Files,
    rows_per_group: int,
) -> None:
    monkeypatch.setattr(module, "MOST_LOOSE_RUNS", most_loose_runs)
    monkeypatch.setattr(module, "ROWS_AT_A_TIME", 7)
    store = LocalFileStore(tmp_path)
    store.delete("/d")
    store.write("/d/_SUCCESS", b"")
    for number, rows in enumerate(files):
        content = parquet_of([Row(p, o) for p, o in rows], row_group_size=rows_per_group)
        store.write(f"/d/part-{number}.parquet", content)
    found = store.read_back("/d")
    every = [row for rows in files for row in rows]
    assert found.landed == expected(every)
    assert found.doubled == expected([row for row in every if every.count(row) > 1])
    assert [file.slices for file in found.files] == [slices(rows) for rows in files]
    assert found.record_count == len(every)


def test_reading_back_asks_for_little(tmp_path: Path) -> None:
    """Two pieces of a file with one row group: its tail, and both columns together."""
    asked: list[tuple[int, int]] = []

    class Counting(LocalFileStore):
        def read_range(self, path: str, position: int, length: int) -> bytes:
            asked.append((position, length))
            return super().read_range(path, position, length)

    store = Counting(tmp_path)
    rows = [Row(0, offset, value=b"%08d" % (offset * 7919) * 8) for offset in range(50_000)]
    store.write("/d/p.parquet", parquet_of(rows, compression="none", use_dictionary=False))
    length = store.status("/d/p.parquet").length_bytes  # type: ignore[union-attr]
    assert store.read_back("/d").landed == {0: OffsetRuns.of([(0, 50_000)])}
    assert len(asked) == 2
    assert sum(each for _, each in asked) < length / 4
    # Times lie beside them: as many requests, and still nothing of the payloads.
    assert store.read_back("/d", EPOCH).landed == {0: OffsetRuns.of([(0, 50_000)])}
    assert len(asked) == 4


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@settings(max_examples=80)
@given(
    files=st.lists(st.lists(st.integers(-1, 30), max_size=40), max_size=3),
    before=st.integers(0, 31_000_000),
    unit=st.sampled_from(["ms", "us", "ns"]),
)
def test_late_rows_are_counted_as_one_by_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: list[list[int]],
    before: int,
    unit: str,
) -> None:
    """Times are milliseconds times a thousand; the instant is a whole microsecond."""
    monkeypatch.setattr(module, "ROWS_AT_A_TIME", 7)
    store = LocalFileStore(tmp_path)
    store.delete("/d")
    store.write("/d/_SUCCESS", b"")
    for number, times in enumerate(files):
        table = table_of([Row(0, n, timestamp_micros=each * 10**6) for n, each in enumerate(times)])
        place = table.schema.get_field_index("timestamp")
        stamps = table.column("timestamp").cast(pa.timestamp(unit, tz="UTC"))
        content = parquet_bytes(table.set_column(place, "timestamp", stamps), row_group_size=11)
        store.write(f"/d/part-{number}.parquet", content)

    found = store.read_back("/d", EPOCH + timedelta(microseconds=before))

    expected_late = []
    for times in files:
        late = [each for each in times if each >= 0 and each * 10**6 < before]
        oldest = EPOCH + timedelta(seconds=min(late)) if late else None
        expected_late.append(LateRows(len(late), oldest) if oldest else None)
    assert [each.late for each in found.files] == expected_late
    assert [each.record_count for each in found.files] == [len(each) for each in files]
    assert {each.late for each in store.read_back("/d").files} <= {None}


ROWS = [
    Row(0, 5),
    Row(0, 6, timestamp_micros=-1_000, key=None, value=None),
    Row(1, 6, timestamp_micros=9_223_372_036_854_000, key=b"", value=b"", headers=[]),
    Row(1, 7, headers=[("h", b"1"), ("h", None), ("ü", b"")]),
    Row(2, 0, value=b"\x00" * 100_000),
    Row(2, 1, value=b"\xff" * 100_000),
]


def expected_record(row: Row) -> bytes:
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
    assert found == expected_record(row)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_the_timestamp_counts_in_milliseconds_whatever_its_unit(tmp_path: Path, unit: str) -> None:
    table = table_of(ROWS[:1])
    place = table.schema.get_field_index("timestamp")
    stamps = table.column("timestamp").cast(pa.timestamp(unit, tz="UTC"))
    store = LocalFileStore(tmp_path)
    store.write("/d/p.parquet", parquet_bytes(table.set_column(place, "timestamp", stamps)))
    assert store.landed_record_hash("/d", "p.parquet", 0, 5) == expected_record(ROWS[0])


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


Rows = list[tuple[int, int]]

some_rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 25)), max_size=60)


def table(rows: Rows) -> RunTable:
    return runs_in(
        np.array([p for p, _ in rows], np.int32), np.array([o for _, o in rows], np.int64)
    )


def listed(runs: RunTable) -> list[tuple[int, int, int]]:
    columns = (runs.partitions, runs.from_offsets, runs.until_offsets)
    return list(zip(*(each.tolist() for each in columns), strict=True))


def offsets(runs: RunTable) -> list[tuple[int, int]]:
    return [(p, o) for p, start, until in listed(runs) for o in range(start, until)]


@pytest.mark.parametrize(
    ("rows", "runs"),
    [
        ([], []),
        ([(0, 5)], [(0, 5, 6)]),
        ([(0, 5), (0, 6), (0, 7)], [(0, 5, 8)]),
        ([(0, 5), (0, 5)], [(0, 5, 6), (0, 5, 6)]),
        ([(0, 6), (0, 5)], [(0, 6, 7), (0, 5, 6)]),
        ([(0, 5), (1, 6)], [(0, 5, 6), (1, 6, 7)]),
    ],
)
def test_a_run_ends_where_the_next_row_is_not_one_further(
    rows: Rows, runs: list[tuple[int, int, int]]
) -> None:
    assert listed(table(rows)) == runs


@given(some_rows)
def test_every_row_is_in_exactly_one_run(rows: Rows) -> None:
    assert offsets(table(rows)) == rows


@given(some_rows)
def test_sweeping_tells_once_from_twice(rows: Rows) -> None:
    landed, doubled = swept(table(rows))
    assert offsets(landed) == sorted(set(rows))
    assert offsets(doubled) == sorted({row for row in rows if rows.count(row) > 1})


@given(some_rows)
def test_swept_runs_are_sorted_disjoint_and_maximal(rows: Rows) -> None:
    for runs in swept(table(rows)):
        found = listed(runs)
        for (p, _, until), (q, start, _) in pairwise(found):
            assert (p, until) < (q, start) or p < q


@given(some_rows, some_rows)
def test_slices_of_parts_are_the_slices_of_the_whole(one: Rows, other: Rows) -> None:
    parts = SliceTable.joined([SliceTable.of(table(one)), SliceTable.of(table(other))])
    assert parts.to_slices() == SliceTable.of(table(one + other)).to_slices()


def test_a_slice_counts_doubled_rows_twice() -> None:
    rows = [(1, 9), (0, 4), (0, 2), (0, 4)]
    assert SliceTable.of(table(rows)).to_slices() == (FileSlice(0, 2, 4, 3), FileSlice(1, 9, 9, 1))


@given(some_rows)
def test_runs_by_partition_hold_the_same_offsets(rows: Rows) -> None:
    landed, _ = swept(table(rows))
    assert {
        (partition, offset)
        for partition, runs in landed.by_partition().items()
        for start, until in runs
        for offset in range(start, until)
    } == set(rows)


CONTENT = bytes(range(256)) * 4096  # 1 MB


class Remote:
    """Keeps what was fetched."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.fetched: list[tuple[int, int]] = []

    def fetch(self, position: int, length: int) -> bytes:
        self.fetched.append((position, length))
        return self.content[position : position + length]


def opened(content: bytes = CONTENT) -> tuple[RangedFile, Remote]:
    remote = Remote(content)
    return RangedFile(remote.fetch, len(content)), remote


def test_the_tail_is_fetched_once_and_never_again() -> None:
    file, remote = opened()
    file.seek(-8, io.SEEK_END)
    assert file.read() == CONTENT[-8:]
    file.seek(-TAIL_BYTES, io.SEEK_END)
    assert file.read(100) == CONTENT[-TAIL_BYTES:][:100]
    assert remote.fetched == [(len(CONTENT) - TAIL_BYTES, TAIL_BYTES)]


def test_a_file_smaller_than_the_tail_is_one_request() -> None:
    file, remote = opened(b"0123456789")
    file.seek(2)
    assert (file.read(5), file.tell(), file.read(), file.read(1)) == (b"23456", 7, b"789", b"")
    assert remote.fetched == [(0, 10)]


def test_an_empty_file_is_never_fetched() -> None:
    file, remote = opened(b"")
    assert (file.read(), remote.fetched) == (b"", [])


@given(st.data())
def test_reads_are_those_of_the_file_itself(data: st.DataObject) -> None:
    content = CONTENT[:500_000]
    file, _ = opened(content)
    plain = io.BytesIO(content)
    for _ in range(5):
        position, length = data.draw(st.tuples(st.integers(0, 510_000), st.integers(-1, 9_000)))
        file.seek(position)
        plain.seek(position)
        assert file.read(length) == plain.read(length)
        assert file.tell() == plain.tell()
