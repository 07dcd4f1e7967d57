"""Landed rows as records, for the comparison with what the broker serves at the same places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.rows.record_hash import record_hash
from tallystick.domain.rows.second_read import SeenRecord
from tallystick.errors import ManifestMismatch
from tallystick.storage.landed_rows import opened, rows_of_slices
from tallystick.storage.read_back import RangeReader


def landed_slices(
    store: RangeReader,
    directory: str,
    file_name: str,
    slices: Sequence[OffsetRange],
) -> Iterator[tuple[int, SeenRecord]]:
    """Partition and record of each row that the slices hold, as `rows_of_slices` reads them.

    Raises FileMissing, and ManifestMismatch for a file that is not as it was landed.
    """
    file = opened(store, directory, file_name)
    for row in rows_of_slices(file, slices):
        yield row.partition, SeenRecord.of(**row._asdict())


def landed_record_hash(
    store: RangeReader, directory: str, file_name: str, partition: int, offset: int
) -> bytes:
    """`record_hash` over the row of this place, its timestamp in milliseconds.

    Raises FileMissing without the file, ManifestMismatch without the row.
    """
    file = opened(store, directory, file_name)
    place = OffsetRange(TopicPartition("", partition), offset, offset + 1)
    row = next(rows_of_slices(file, [place]), None)
    if row is None:
        raise ManifestMismatch(
            file.path, f"a row of partition {partition}, offset {offset}", "none"
        )
    return record_hash(
        partition=partition,
        offset=offset,
        timestamp_ms=row.timestamp_ms,
        key=row.key,
        value=row.value,
        headers=row.headers,
    )
