"""Reads what producers sent from one landed file: every row's place, time and content hash."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from tallystick.domain.rows.payload import Payload
from tallystick.domain.rows.record_hash import record_hash
from tallystick.storage.landed_rows import milliseconds, opened, rows_at_a_time
from tallystick.storage.parquet_file import CONTENT, COORDINATES, LandedParquet
from tallystick.storage.read_back import RangeReader

_NOWHERE: Final = {"partition": 0, "offset": 0, "timestamp_ms": 0}


def landed_payloads(
    store: RangeReader, directory: str, file_name: str
) -> Iterator[tuple[int, Payload]]:
    """The partition and the payload of each row, in the order of the file.

    The hash covers key, value and headers. Raises FileMissing and ManifestMismatch; memory holds a
    piece of a row group at a time.
    """
    file = opened(store, directory, file_name)
    for row_group in range(file.metadata.num_row_groups):
        most_rows = rows_at_a_time(file, row_group)
        for batch in file.batches(row_group, (*COORDINATES, *CONTENT), most_rows=most_rows):
            yield from _payloads(file, batch)


def _payloads(file: LandedParquet, batch: pa.RecordBatch) -> Iterator[tuple[int, Payload]]:
    places = [file.numbers(name, batch.column(name)).tolist() for name in COORDINATES]
    times = milliseconds(file.path, batch.column("timestamp"))
    with file.told():
        keys, values, headers = (
            batch.column(name).to_pylist() for name in ("key", "value", "headers")
        )
    for partition, offset, time, key, value, named in zip(
        *places, times, keys, values, file.headers(headers), strict=True
    ):
        content = record_hash(**_NOWHERE, key=key, value=value, headers=named)
        yield partition, Payload(offset, time, content)
