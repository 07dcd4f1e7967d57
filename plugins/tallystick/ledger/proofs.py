"""Files, retractions and looks at them: what is known of all landed data without a manifest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.batches.states import BatchState, HoleClass
from tallystick.domain.identities import AttemptId, BatchId, FeedName, GenerationId
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.ledger.connection import Tables
from tallystick.ledger.rows import batch_path_in


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


class Proofs(Tables):
    """What reconciliation and repair ask of landed files."""

    def batch_places(self, feed: FeedName) -> Sequence[BatchPlace]:
        """Where every committed batch lies, in the order of the commits."""
        rows = self._connection.rows("batch_places", feed=feed)
        return [BatchPlace(*_place(row)) for row in rows]

    def directories(
        self, feed: FeedName, of: Collection[BatchId] | None = None
    ) -> Sequence[CommittedDirectory]:
        """The directories of these committed batches, or of all, in the order of the commits."""
        batch_ids = None if of is None else list(of)
        rows = self._connection.rows("directories", feed=feed, batch_ids=batch_ids)
        return [_directory(row) for row in rows]

    def record_checksum(self, batch_id: BatchId, name: str, checksum: str) -> None:
        """Keep that a file with this checksum has the bytes that were committed: it is stored in
        another way. From now on it is the one on record; what was committed stays in the manifest.
        """
        self._connection.change("record_checksum", batch_id=batch_id, name=name, checksum=checksum)

    def landed_counts(self, feed: FeedName) -> Mapping[GenerationId, LandedCounts]:
        """Rows, holes and losses of each generation that has any."""
        with self._connection.reading() as transaction:
            rows = transaction.rows("log_totals", feed=feed)
            spans: defaultdict[GenerationId, dict[HoleClass, int]] = defaultdict(dict)
            for row in transaction.rows("hole_counts", feed=feed):
                spans[GenerationId(row.generation_id)][HoleClass(row.hole_class)] = row.hole_count
        found = {
            GenerationId(row.generation_id): LandedCounts(
                row.record_count, spans.get(row.generation_id, {}), row.lost
            )
            for row in sorted(rows)
        }
        return {each: counts for each, counts in found.items() if counts != LandedCounts()}

    def replacements(self, feed: FeedName) -> Mapping[CommittedFile, BatchId]:
        """Committed files that readers read no more, each with the repair that took its place."""
        return {
            CommittedFile(BatchId(row.batch_id), row.name): BatchId(row.replaced_by)
            for row in self._connection.rows("replacements", feed=feed)
        }

    def batches_holding(
        self, feed: FeedName, generation: int, partition: int, from_offset: int, until_offset: int
    ) -> Sequence[BatchId]:
        """Batches with a file that holds one of these offsets; `generation` is the ordinal."""
        rows = self._connection.rows(
            "batches_holding",
            feed=feed,
            ordinal=generation,
            partition=partition,
            from_offset=from_offset,
            until_offset=until_offset,
        )
        return [BatchId(row.batch_id) for row in rows]

    def committed_within(
        self, feed: FeedName, generation: int, partition: int, from_offset: int, until_offset: int
    ) -> OffsetRuns:
        """Which of these offsets are committed, holes included; `generation` is the ordinal."""
        rows = self._connection.rows(
            "committed_within",
            feed=feed,
            ordinal=generation,
            partition=partition,
            from_offset=from_offset,
            until_offset=until_offset,
        )
        return OffsetRuns.of((row.from_offset, row.until_offset) for row in rows)

    def offsets_due(self, feed: FeedName, every: timedelta, most: int) -> Sequence[OffsetsToRead]:
        """Published batches whose rows were not looked at for so long, by the ledger's clock, or
        were not clean then: these first, then never-tried ones, then by the age of the last try;
        at most so many.
        """
        rows = self._connection.rows("offsets_due", feed=feed, every=every, most=most)
        return [OffsetsToRead(*row) for row in rows]

    def directory_looks(self, feed: FeedName, every: timedelta) -> Mapping[BatchId, DirectoryLook]:
        """The directories that were as committed when they were asked, no longer ago than this by
        the ledger's clock, and of whose rows no look since was not clean (L2, L3). Where the newest
        look showed a shorter retention than a week, a seventh of it counts for batches no older
        than it. `shown_as` is None for a batch of which a repair has replaced files.
        """
        rows = self._connection.rows("directory_looks", feed=feed, every=every)
        return {BatchId(row.batch_id): DirectoryLook(row.digest, row.shown_as) for row in rows}

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
        # Two transactions: of two looks at once each may forget what the other one keeps.
        self._connection.change("forget_directory_looks", batch_ids=list(others))
        self._connection.change(
            "note_directory_looks", **_columns(as_committed), compared_at=compared_at
        )

    def note_shown_directories(self, looks: Mapping[BatchId, DirectoryLook]) -> None:
        """Keep how directories are shown whose entries are those on record; when these were asked
        stays as it is.
        """
        self._connection.change("note_shown_directories", **_columns(looks))

    def compared_hours(self, feed: FeedName) -> Mapping[str, str]:
        """The hours' directories that were compared with this ledger, each with its version."""
        rows = self._connection.rows("compared_hours", feed=feed)
        return {each.path: each.version for each in rows}

    def note_hours(self, feed: FeedName, versions: Mapping[str, str]) -> None:
        """Keep in which versions they were compared; nothing of a feed without a plan."""
        self._connection.change(
            "note_hours", feed=feed, paths=list(versions), versions=list(versions.values())
        )


def _columns(looks: Mapping[BatchId, DirectoryLook]) -> dict[str, list[Any]]:
    return {
        "batch_ids": list(looks),
        "digests": [each.digest for each in looks.values()],
        "shown_as": [each.shown_as for each in looks.values()],
    }


def _place(row: Any) -> tuple[BatchPath, AttemptId, bool, bytes, bytes | None]:
    return (
        batch_path_in(row),
        AttemptId(row.committed_by),
        row.state == BatchState.PUBLISHED.value,
        row.manifest_sha256,
        row.account_sha256,
    )


def _directory(row: Any) -> CommittedDirectory:
    files = zip(
        row.names or (),
        row.lengths or (),
        row.checksums or (),
        row.record_counts or (),
        strict=True,
    )
    return CommittedDirectory(
        *_place(row), files={name: FileState(*facts) for name, *facts in files}
    )
