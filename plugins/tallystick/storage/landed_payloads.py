"""What producers sent, read from one landed file: every row's place, time and content hash."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from tallystick.domain.content_rules import Payload
from tallystick.domain.record_hash import record_hash
from tallystick.errors import FileMissing, ManifestMismatch
from tallystick.storage.landed_record import BYTES_AT_A_TIME, PER_MILLISECOND
from tallystick.storage.parquet_file import CONTENT, COORDINATES, EXPECTED, LandedParquet
from tallystick.storage.read_back import RangeReader

_NOWHERE: Final = {"partition": 0, "offset": 0, "timestamp_ms": 0}


def landed_payloads(
    store: RangeReader, directory: str, file_name: str
) -> Iterator[tuple[int, Payload]]:
    """The partition and the payload of each row, in the order of the file.

    The hash covers key, value and headers. Raises FileMissing and ManifestMismatch; memory holds a
    piece of a row group at a time.
    """
    path = f"{directory}/{file_name}"
    length = next(
        (each.length_bytes for each in store.entries(directory) if each.name == file_name), None
    )
    if length is None:
        raise FileMissing(path)
    file = LandedParquet(path, lambda at, size: store.read_range(path, at, size), length)
    for row_group in range(file.metadata.num_row_groups):
        most_rows = max(1, int(BYTES_AT_A_TIME / max(1.0, file.bytes_per_row(row_group))))
        for batch in file.batches(row_group, (*COORDINATES, *CONTENT), most_rows=most_rows):
            yield from _payloads(path, batch)


def _payloads(path: str, batch: pa.RecordBatch) -> Iterator[tuple[int, Payload]]:
    times = batch.column("timestamp")
    if not pa.types.is_timestamp(times.type) or times.null_count:
        raise ManifestMismatch(path, EXPECTED, f"a timestamp of type {times.type}")
    unit = PER_MILLISECOND[times.type.unit]
    columns = [batch.column(name).to_pylist() for name in ("partition", "offset")]
    columns.append(times.cast(pa.int64()).to_pylist())
    columns += [batch.column(name).to_pylist() for name in ("key", "value", "headers")]
    for partition, offset, time, key, value, headers in zip(*columns, strict=True):
        content = record_hash(
            **_NOWHERE,
            key=key,
            value=value,
            headers=[(each["key"], each["value"]) for each in headers or ()],
        )
        yield partition, Payload(offset, time // unit, content)
