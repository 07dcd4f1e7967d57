"""What was read back from storage: files, and the exact offsets they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tallystick.domain.offsets.runs import OffsetRuns


@dataclass(frozen=True, slots=True)
class FileSlice:
    """What one file holds of one partition."""

    partition: int
    first_offset: int
    """Smallest offset (included)."""
    last_offset: int
    """Largest offset (included)."""
    record_count: int

    @property
    def run(self) -> tuple[int, int]:
        """The offsets [from, until) that it spans."""
        return self.first_offset, self.last_offset + 1

    def meets(self, partition: int, from_offset: int, until_offset: int) -> bool:
        """True if the span of the slice shares an offset with [from, until) of the partition."""
        return (
            self.partition == partition
            and self.first_offset < until_offset
            and from_offset <= self.last_offset
        )


@dataclass(frozen=True, slots=True)
class LandedFile:
    """One Parquet file of a batch."""

    name: str
    """File name inside the batch's directory."""
    length_bytes: int
    checksum: str
    """HDFS's own checksum of the file, as `algorithm:hex`: tells changed from unchanged."""
    slices: tuple[FileSlice, ...]

    @property
    def record_count(self) -> int:
        """Rows in the file."""
        return sum(each.record_count for each in self.slices)


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Everything that a staging directory's files hold, from their offset columns."""

    files: tuple[LandedFile, ...]
    landed: Mapping[int, OffsetRuns]
    """By partition: offsets that are there at least once."""
    doubled: Mapping[int, OffsetRuns]
    """By partition: offsets that are there more than once; empty when all is well."""

    @property
    def record_count(self) -> int:
        """Rows in all files."""
        return sum(each.record_count for each in self.files)
