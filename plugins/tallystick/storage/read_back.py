"""A landed directory's files alone tell the exact offsets, and who holds them.

Reads the partition and offset columns only, and that of times where late rows are asked for, row
group by row group, a few files at a time. Decides nothing about what should be there.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import pyarrow as pa

from tallystick.domain.batches.landed import LandedFile, LateRows, ReadBack
from tallystick.errors import FileMissing, ManifestMismatch
from tallystick.ports.file_store import FileStore, StoredEntry
from tallystick.storage.parquet_file import COORDINATES, EXPECTED, LandedParquet
from tallystick.storage.run_table import (
    RunTable,
    SliceTable,
    runs_in,
    swept,
)

THREADS: Final = 4
# Measured: more of them take more memory and as much time, fewer more time.
ROWS_AT_A_TIME: Final = 1 << 16
# Rows in no order give a run each; from here on they are put together before more are read.
MOST_LOOSE_RUNS: Final = 1 << 21
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True, eq=False)
class _Offsets:
    """Offsets seen so far, at least once and more than once, and runs not yet put among them."""

    landed: RunTable
    doubled: RunTable
    loose: list[RunTable]
    loose_count: int

    @classmethod
    def none(cls) -> _Offsets:
        return cls(RunTable.empty(), RunTable.empty(), [], 0)

    def add(self, runs: RunTable) -> None:
        self.loose.append(runs)
        self.loose_count += len(runs)
        if self.loose_count > max(MOST_LOOSE_RUNS, len(self.landed)):
            self.settle()

    def settle(self) -> None:
        self.landed, twice = swept(RunTable.joined([self.landed, *self.loose]))
        self.doubled, _ = swept(RunTable.joined([self.doubled, twice]))
        self.loose, self.loose_count = [], 0


def read_back(store: FileStore, directory: str, late_before: datetime | None = None) -> ReadBack:
    """Every file that a reader of the directory would read, and the exact offsets they hold.

    With `late_before` also how many rows of each are older.

    Raises ManifestMismatch for whatever a reader would read, or step into, and is no landed file.
    """
    entries = [each for each in store.entries(directory) if each.is_read]
    for entry in entries:
        if entry.is_directory:
            path = f"{directory}/{entry.name}"
            raise ManifestMismatch(path, EXPECTED, "a directory, which readers step into")
    with ThreadPoolExecutor(THREADS, thread_name_prefix="read-back") as pool:
        reading = [pool.submit(_read_file, store, directory, each, late_before) for each in entries]
        try:
            read = [each.result() for each in reading]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    total = _Offsets.none()
    for _, offsets in read:
        total.add(offsets.landed)
        total.doubled, _ = swept(RunTable.joined([total.doubled, offsets.doubled]))
    total.settle()
    return ReadBack(
        files=tuple(file for file, _ in read),
        landed=total.landed.by_partition(),
        doubled=total.doubled.by_partition(),
    )


def read_back_file(store: FileStore, directory: str, name: str) -> ReadBack:
    """The same of one file; raises FileMissing, and ManifestMismatch for no landed file."""
    entry = store.status(f"{directory}/{name}")
    if entry is None or entry.is_directory:
        raise FileMissing(f"{directory}/{name}")
    file, offsets = _read_file(store, directory, entry)
    return ReadBack((file,), offsets.landed.by_partition(), offsets.doubled.by_partition())


def _read_file(
    store: FileStore, directory: str, entry: StoredEntry, late_before: datetime | None = None
) -> tuple[LandedFile, _Offsets]:
    path = f"{directory}/{entry.name}"
    # First the checksum: an open file has none, and its length is not yet true.
    checksum = entry.checksum(store.checksum(path))
    file = LandedParquet(
        path, lambda at, length: store.read_range(path, at, length), entry.length_bytes
    )
    offsets = _Offsets.none()
    slices: list[SliceTable] = []
    late: list[LateRows | None] = []
    columns = (*COORDINATES, "timestamp") if late_before else COORDINATES
    for row_group in range(file.metadata.num_row_groups):
        for batch in file.batches(row_group, columns, most_rows=ROWS_AT_A_TIME):
            runs = _runs_of(file, batch)
            slices.append(SliceTable.of(runs))
            offsets.add(runs)
            if late_before:
                late.append(_late_in(file, batch.column("timestamp"), late_before))
    offsets.settle()
    held = SliceTable.joined(slices).to_slices()
    total = LateRows.total(late)
    return LandedFile(entry.name, entry.length_bytes, checksum, held, total), offsets


def _runs_of(file: LandedParquet, batch: pa.RecordBatch) -> RunTable:
    """The batch's rows as runs; raises ManifestMismatch for a place that no record can have."""
    partitions, offsets = (file.numbers(name, batch.column(name)) for name in COORDINATES)
    runs = runs_in(partitions, offsets)
    if np.any((runs.partitions < 0) | (runs.from_offsets < 0) | (runs.until_offsets <= 0)):
        raise ManifestMismatch(file.path, EXPECTED, "a negative partition or offset")
    return runs


def _late_in(file: LandedParquet, column: pa.Array, before: datetime) -> LateRows | None:
    """The rows that are older. One without a time, which Kafka counts as -1, is never late."""
    with file.told():
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False).view(pa.int64())
    times = file.numbers("timestamp", column)
    times = times[(times >= 0) & (times < (before - _EPOCH) // timedelta(microseconds=1))]
    if not len(times):
        return None
    return LateRows(len(times), _EPOCH + timedelta(microseconds=int(times.min())))
