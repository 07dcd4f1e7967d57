"""Every store answers so about landed rows, over its own listings and reads. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tallystick.domain.batches.landed import ReadBack
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rows.payload import Payload
from tallystick.domain.rows.second_read import SeenRecord
from tallystick.storage.hdfs_checksum import checksum_like
from tallystick.storage.landed_rows import landed_payloads, landed_record_hash, landed_slices
from tallystick.storage.paths import checked
from tallystick.storage.read_back import RangeReader, read_back, read_back_file


class RowAnswers:
    """The part of `FileStore` that looks into files; see there for every promise."""

    def read_back(self: RangeReader, directory: str) -> ReadBack:
        """The directory's Parquet files and the exact offsets they hold."""
        return read_back(self, checked(directory))

    def read_back_file(self: RangeReader, directory: str, name: str) -> ReadBack:
        """The exact offsets of one file."""
        return read_back_file(self, checked(directory), name)

    def checksum_like(self: RangeReader, path: str, length_bytes: int, like: str) -> str | None:
        """The checksum of the file's bytes, in the kind of another one."""

        def fetch(position: int, length: int) -> bytes:
            return self.read_range(checked(path), position, length)

        return checksum_like(fetch, length_bytes, like)

    def landed_record_hash(
        self: RangeReader, directory: str, file_name: str, partition: int, offset: int
    ) -> bytes:
        """`record_hash` over one landed row."""
        return landed_record_hash(self, checked(directory), file_name, partition, offset)

    def payloads(
        self: RangeReader, directory: str, file_name: str
    ) -> Iterator[tuple[int, Payload]]:
        """Every row's partition, and what its producer sent."""
        return landed_payloads(self, checked(directory), file_name)

    def landed_slices(
        self: RangeReader,
        directory: str,
        file_name: str,
        slices: Sequence[OffsetRange],
    ) -> Iterator[tuple[int, SeenRecord]]:
        """Partition and record of each row that the slices hold."""
        return landed_slices(self, checked(directory), file_name, slices)
