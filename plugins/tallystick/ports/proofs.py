"""What the ledger says of all landed files, without reading a single manifest."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import AttemptId, BatchId, FeedName, GenerationId
from tallystick.domain.offsets.runs import OffsetRuns


@dataclass(frozen=True, slots=True)
class FileState:
    """A committed file as it was verified."""

    length_bytes: int
    checksum: str
    record_count: int

    @classmethod
    def of(cls, file: LandedFile) -> FileState:
        """As its manifest has it."""
        return cls(file.length_bytes, file.checksum, file.record_count)


@dataclass(frozen=True, slots=True)
class BatchPlace:
    """Where one committed batch lies."""

    path: BatchPath
    attempt_id: AttemptId
    is_published: bool
    manifest_sha256: bytes
    """Of its manifest's text."""
    account_sha256: bytes | None
    """Of the text without hashes, where the ledger has no other one: it may lie there instead."""

    @property
    def batch_id(self) -> BatchId:
        """Whose directory it is."""
        return self.path.batch_id

    @property
    def staging(self) -> str:
        """Where the files lie until they are published."""
        return StagingPath(self.path.root, self.batch_id, self.attempt_id).data


@dataclass(frozen=True, slots=True)
class CommittedDirectory(BatchPlace):
    """One committed batch's directory, and what readers must find in it."""

    files: Mapping[str, FileState]
    """By name; without those that a repair has replaced."""


@dataclass(frozen=True, slots=True)
class DirectoryLook:
    """Of a published directory that was as committed: how it was listed, and shown."""

    digest: bytes
    """Of its entries, and of what the ledger has of it."""
    shown_as: bytes | None = None
    """Of its own entry in its parent's listing before; None where that can't tell of a change."""


@dataclass(frozen=True, slots=True)
class LandedCounts:
    """What became of one generation's offsets; what a repair has replaced is counted once.

    Up to the frontier, rows + holes + lost offsets = span.
    """

    record_count: int = 0
    holes: Mapping[HoleClass, int] = field(default_factory=dict)
    lost_count: int = 0
    """Offsets recorded as lost."""


@dataclass(frozen=True, slots=True)
class OffsetsToRead:
    """A published batch whose offset columns are due to be read again."""

    batch_id: BatchId
    record_count: int


class ProofsRecord(Protocol):
    """The part of the ledger that reconciliation and repair ask; raises what `Ledger` raises."""

    def batch_places(self, feed: FeedName) -> Sequence[BatchPlace]:
        """Where every committed batch lies, in the order of the commits."""
        ...

    def directories(
        self, feed: FeedName, of: Collection[BatchId] | None = None
    ) -> Sequence[CommittedDirectory]:
        """The directories of these committed batches, or of all, in the order of the commits."""
        ...

    def record_checksum(self, batch_id: BatchId, name: str, checksum: str) -> None:
        """Keep that a file with this checksum has the bytes that were committed: it is stored in
        another way. From now on it is the one on record; what was committed stays in the manifest.
        """
        ...

    def landed_counts(self, feed: FeedName) -> Mapping[GenerationId, LandedCounts]:
        """Rows, holes and losses of each generation that has any."""
        ...

    def replacements(self, feed: FeedName) -> Mapping[CommittedFile, BatchId]:
        """Committed files that readers read no more, each with the repair that took its place."""
        ...

    def batches_holding(
        self, feed: FeedName, generation: int, partition: int, from_offset: int, until_offset: int
    ) -> Sequence[BatchId]:
        """Batches with a file that holds one of these offsets; `generation` is the ordinal."""
        ...

    def committed_within(
        self, feed: FeedName, generation: int, partition: int, from_offset: int, until_offset: int
    ) -> OffsetRuns:
        """Which of these offsets are committed, holes included; `generation` is the ordinal."""
        ...

    def offsets_due(self, feed: FeedName, every: timedelta, most: int) -> Sequence[OffsetsToRead]:
        """Published batches whose rows were not looked at for so long, by the ledger's clock, or
        were not clean then: these first, then never-tried ones, then by the age of the last try;
        at most so many.
        """
        ...

    def record_offsets_look(self, batch_id: BatchId, *, is_clean: bool) -> None:
        """Keep that the batch's offset columns were read again."""
        ...

    def directory_looks(self, feed: FeedName, every: timedelta) -> Mapping[BatchId, DirectoryLook]:
        """The directories that were as committed when they were asked, no longer ago than this by
        the ledger's clock, and of whose rows no look since was not clean (L2, L3). Where the newest
        look showed a shorter retention than a week, a seventh of it counts for batches no older
        than it. `shown_as` is None for a batch of which a repair has replaced files.
        """
        ...

    def note_directory_looks(
        self,
        as_committed: Mapping[BatchId, DirectoryLook],
        others: Collection[BatchId],
        *,
        compared_at: datetime,
    ) -> None:
        """Keep that directories are as committed, and forget the others.

        `compared_at` is when the look began, by the ledger's clock.
        """
        ...

    def note_shown_directories(self, looks: Mapping[BatchId, DirectoryLook]) -> None:
        """Keep how directories are shown whose entries are those on record; when these were asked
        stays as it is.
        """
        ...

    def compared_hours(self, feed: FeedName) -> Mapping[str, str]:
        """The hours' directories that were compared with this ledger, each with its version."""
        ...

    def note_hours(self, feed: FeedName, versions: Mapping[str, str]) -> None:
        """Keep in which versions they were compared; nothing of a feed without a plan."""
        ...
