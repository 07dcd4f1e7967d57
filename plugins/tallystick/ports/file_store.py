"""What is asked of HDFS: few verbs, each of them atomic or repeatable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol

from tallystick.domain.batches.landed import ReadBack
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rows.payload import Payload
from tallystick.domain.rows.second_read import SeenRecord

_SETTLED_MS: Final = 3_600_000
_SUMMARIES: Final = ("_metadata", "_common_metadata")


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """One entry of a directory."""

    name: str
    is_directory: bool
    length_bytes: int
    """0 for a directory."""
    changed_ms: int = field(default=0, compare=False)
    """When it was changed last, by the file system's clock: of a directory, when an entry came or
    went."""
    version: str = field(default="", compare=False)
    """Of a file, another one whenever its bytes were written anew, another file took its place, or
    its owner, group or mode has changed; empty where the store can't tell. What its blocks have
    become on their disks changes nothing. Of a directory, another one whenever an entry came, went
    or was replaced after `changed_ms`; not where bytes were added to one, or cut off."""
    coding: str = field(default="", compare=False)
    """Of a file that is stored by erasure coding, its policy: its checksum depends on it."""

    @property
    def is_read(self) -> bool:
        """True for what any reader reads, or steps into, when it is given the directory around.

        All skip names that begin with `.`, or with `_`, but Spark takes `_a=1` for a partition
        column, and steps into directories that are named as Parquet's summaries. No suffix hides a
        file: Spark alone skips `._COPYING_`, which `hdfs dfs -put` writes and leaves behind when it
        is killed (HadoopFSUtils.shouldFilterOutPathName); Hive, Trino and pyarrow read it.
        """
        if self.is_directory and self.name.startswith(_SUMMARIES):
            return True
        return not (
            self.name.startswith(".") or (self.name.startswith("_") and "=" not in self.name)
        )

    def checksum(self, told: str) -> str:
        """What storage tells as the file's checksum, with the coding by which it was made."""
        return f"{self.coding}/{told}" if self.coding else told

    def settled_version(self, now_ms: int | None) -> str:
        """Give a directory's version, if its next change will show there; empty where it may not.

        `now_ms` is the file system's clock, asked before the directory was listed. A change gives a
        directory that clock's time, but never an earlier one than it has. So it shows only where
        the time is older than now, and by so much, for two changes may come in one millisecond, and
        a NameNode that takes over may have another clock.
        """
        is_settled = now_ms is not None and self.changed_ms < now_ms - _SETTLED_MS
        return self.version if is_settled else ""


class FileStore(Protocol):
    """One file system.

    Every method raises StorageUnavailable (retry) or StorageRefused (permission, quota).
    """

    def uri(self, path: str) -> str:
        """The path as Spark must be given it, with scheme and authority."""
        ...

    def clock_ms(self) -> int | None:
        """The file system's own time, which it gives to what is changed; None if it tells none."""
        ...

    def require_writable(self, root: str, shown_in: str | None = None) -> None:
        """Return if a landing can succeed: reachable, out of safe mode, directory writable, quota
        left.

        `shown_in` is where batches are to be shown, of the feed; the root where it is not said.
        Asked before anything is read from Kafka, so a full disk costs nothing.
        """
        ...

    def write(self, path: str, content: bytes) -> None:
        """Write a whole small file, replacing one that is there; makes parents."""
        ...

    def read(self, path: str) -> bytes:
        """A whole small file; raises FileMissing."""
        ...

    def read_range(self, path: str, position: int, length: int) -> bytes:
        """Exactly these bytes; raises FileMissing, StorageUnavailable if there are fewer."""
        ...

    def status(self, path: str) -> StoredEntry | None:
        """The entry at the path; None if there is none."""
        ...

    def entries(self, path: str) -> Sequence[StoredEntry]:
        """The entries of a directory, sorted by name; raises FileMissing."""
        ...

    def checksum(self, path: str) -> str:
        """The file system's checksum of a closed file, as `algorithm:hex`; raises FileMissing."""
        ...

    def checksum_like(self, path: str, length_bytes: int, like: str) -> str | None:
        """The checksum of the file's bytes in the kind of another one, all of them read; None for a
        kind that can't be made here. Raises what `read_range` raises.
        """
        ...

    def rename_exclusive(self, source: str, target: str) -> None:
        """Rename a directory in one atomic step; makes the target's parent first.

        Raises TargetOccupied where the target exists (nothing is moved or nested), FileMissing
        where the source does not, RenameOutcomeUnknown (retry) where the answer was lost.
        """
        ...

    def take_rights(self, directory: str, within: str) -> None:
        """Give a directory and its files the rights that `within` gives to what is made in it.

        Group, default ACL, permission bits: a rename into `within` brings none of them. Makes
        `within` where it is missing. What the user may not change stays, with a warning.
        """
        ...

    def delete(self, path: str) -> bool:
        """Delete the path and all below it; False if it wasn't there."""
        ...

    def delete_empty(self, directory: str) -> bool:
        """Delete the directory if nothing is in it, in one step; False if it holds something.

        It may be asked for twice: False, too, if the first time deleted it and nobody heard.
        """
        ...

    def read_back(self, directory: str, late_before: datetime | None = None) -> ReadBack:
        """Every Parquet file's length and checksum, and the exact offsets it holds.

        Reads the partition and offset columns only; with `late_before` also the times, and counts
        older rows. An open or truncated file raises ManifestMismatch. Memory grows with runs, not
        with records.
        """
        ...

    def read_back_file(self, directory: str, name: str) -> ReadBack:
        """The same of one file; raises FileMissing, and ManifestMismatch for no landed file."""
        ...

    def landed_record_hash(
        self, directory: str, file_name: str, partition: int, offset: int
    ) -> bytes:
        """`record_hash` over one landed row, its timestamp in milliseconds.

        Reads coordinates up to it, and the row group that holds it. Raises FileMissing without the
        file, ManifestMismatch without the row.
        """
        ...

    def payloads(self, directory: str, file_name: str) -> Iterator[tuple[int, Payload]]:
        """Every row's partition, and what its producer sent, in the order of the file.

        Raises FileMissing, and ManifestMismatch for a file that is not as it was landed.
        """
        ...

    def landed_slices(
        self,
        directory: str,
        file_name: str,
        slices: Sequence[OffsetRange],
    ) -> Iterator[tuple[int, SeenRecord]]:
        """Partition and record of each row that the slices hold, in the order of the file.

        Raises FileMissing, and ManifestMismatch for a file that is not as it was landed.
        """
        ...
