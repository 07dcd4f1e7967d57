"""Reading back against brute force; what both stores promise is in tests/contract."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.storage import read_back as module
from tests.support.landed_rows import Row, parquet_of
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
