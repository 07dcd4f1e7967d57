"""What was read back from storage: files, and the exact offsets they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

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
class LateRows:
    """Rows that are older than what they lie under: their batch's label."""

    rows: int
    """Never zero."""
    oldest_at: datetime

    @classmethod
    def total(cls, parts: Iterable[LateRows | None]) -> LateRows | None:
        """All of them together; None where there are none."""
        found = [each for each in parts if each]
        if not found:
            return None
        return cls(sum(each.rows for each in found), min(each.oldest_at for each in found))


@dataclass(frozen=True, slots=True)
class LandedFile:
    """One Parquet file of a batch."""

    name: str
    """File name inside the batch's directory."""
    length_bytes: int
    checksum: str
    """HDFS's own checksum of the file, as `algorithm:hex`: tells changed from unchanged."""
    slices: tuple[FileSlice, ...]
    late: LateRows | None = None
    """None, too, of a feed that does not land by windows."""

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
