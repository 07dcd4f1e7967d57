"""A scrub by pyarrow and plain Python: the same answers as Spark's, without Spark."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.parquet as pq

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.fingerprint import EMPTY, Fingerprint
from tallystick.domain.rows.row_hash import row_hash
from tallystick.domain.rows.scrub import ReadFile, ScrubFile, ScrubPlan, ScrubResult, compared
from tallystick.errors import FileMissing
from tallystick.ports.file_store import FileStore


def scrub_by_pyarrow(store: FileStore, plan: ScrubPlan, base: str) -> ScrubResult:
    """What a full read of the plan's files gives; `base` is what all URIs begin with."""
    files = tuple(_read(store, each, each.uri.removeprefix(base)) for each in plan.files)
    return ScrubResult(plan.scrub_id, files)


def unwritten() -> ScrubResult:
    """In place of a scrub's result, where nobody may read one."""
    raise AssertionError("a result is read, and none was written")


def _read(store: FileStore, file: ScrubFile, path: str) -> ReadFile:
    try:
        content = store.read(path)
        table = pq.ParquetFile(io.BytesIO(content), page_checksum_verification=True).read()
    except (FileMissing, OSError, pa.ArrowInvalid) as error:
        is_damaged = not isinstance(error, FileMissing)
        return ReadFile(file.name, failure=str(error), is_damaged=is_damaged)
    place = table.schema.get_field_index("timestamp")
    table = table.set_column(
        place, "timestamp", table["timestamp"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    )
    rows: dict[int, list[tuple[int, int]]] = {}
    for row in table.to_pylist():
        headers = row["headers"]
        hashed = row_hash(
            partition=row["partition"],
            offset=row["offset"],
            timestamp_micros=row["timestamp"],
            timestamp_type=row["timestamp_type"],
            key=row["key"],
            value=row["value"],
            headers=None if headers is None else [(h["key"], h["value"]) for h in headers],
        )
        rows.setdefault(row["partition"], []).append((row["offset"], hashed))
    expected = {each.partition: each for each in file.slices}
    slices = []
    for partition in sorted(expected.keys() | rows.keys()):
        found = rows.get(partition, [])
        times = Counter(offset for offset, _ in found)
        slices.append(
            compared(
                expected.get(partition),
                partition,
                sum((Fingerprint.of_row(*each) for each in found), start=EMPTY),
                present=_runs(times),
                doubled=_runs(offset for offset, count in times.items() if count > 1),
            )
        )
    return ReadFile(file.name, tuple(slices))


def _runs(offsets: Iterable[int]) -> OffsetRuns:
    return OffsetRuns.of((each, each + 1) for each in offsets)
