"""The ProofsRecord port on PostgreSQL: files, retractions and looks, without manifests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.states import BatchState, HoleClass
from tallystick.domain.identities import AttemptId, BatchId, FeedName, GenerationId
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.ledger.connection import LedgerConnection
from tallystick.ledger.rows import in_utc
from tallystick.ports.proofs import (
    BatchPlace,
    CommittedDirectory,
    DirectoryLook,
    FileState,
    LandedCounts,
    OffsetsToRead,
)


class PostgresProofs:
    """Fulfils `ProofsRecord`; see there for every promise."""

    _connection: LedgerConnection

    def batch_places(self, feed: FeedName) -> Sequence[BatchPlace]:
        """Where every committed batch lies."""
        with self._connection.reading() as transaction:
            return [BatchPlace(*_place(row)) for row in transaction.rows("batch_places", feed=feed)]

    def directories(
        self, feed: FeedName, of: Collection[BatchId] | None = None
    ) -> Sequence[CommittedDirectory]:
        """The directories of these committed batches, or of all."""
        batch_ids = None if of is None else list(of)
        with self._connection.reading() as transaction:
            rows = transaction.rows("directories", feed=feed, batch_ids=batch_ids)
        return [_directory(row) for row in rows]

    def record_checksum(self, batch_id: BatchId, name: str, checksum: str) -> None:
        """Keep another checksum of the same bytes."""
        with self._connection.writing() as transaction:
            transaction.change("record_checksum", batch_id=batch_id, name=name, checksum=checksum)

    def landed_counts(self, feed: FeedName) -> Mapping[GenerationId, LandedCounts]:
        """Rows, holes and losses of each generation that has any."""
        with self._connection.reading() as transaction:
            rows = transaction.rows("row_counts", feed=feed)
            holes = transaction.rows("hole_counts", feed=feed)
        spans: defaultdict[GenerationId, dict[HoleClass, int]] = defaultdict(dict)
        for row in holes:
            spans[GenerationId(row.generation_id)][HoleClass(row.hole_class)] = row.hole_count
        counts = {GenerationId(row.generation_id): row for row in rows}
        return {
            each: LandedCounts(
                counts[each].record_count if each in counts else 0,
                spans.get(each, {}),
                counts[each].lost_count if each in counts else 0,
            )
            for each in sorted({*counts, *spans})
        }

    def replacements(self, feed: FeedName) -> Mapping[CommittedFile, BatchId]:
        """Committed files that a repair has replaced."""
        with self._connection.reading() as transaction:
            rows = transaction.rows("replacements", feed=feed)
        return {
            CommittedFile(BatchId(row.batch_id), row.name): BatchId(row.replaced_by) for row in rows
        }

    def batches_holding(
        self, feed: FeedName, generation: int, partition: int, from_offset: int, until_offset: int
    ) -> Sequence[BatchId]:
        """Batches with a file that holds one of these offsets."""
        with self._connection.reading() as transaction:
            rows = transaction.rows(
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
        """Which of these offsets are committed."""
        with self._connection.reading() as transaction:
            rows = transaction.rows(
                "committed_within",
                feed=feed,
                ordinal=generation,
                partition=partition,
                from_offset=from_offset,
                until_offset=until_offset,
            )
        return OffsetRuns.of((row.from_offset, row.until_offset) for row in rows)

    def offsets_due(self, feed: FeedName, every: timedelta, most: int) -> Sequence[OffsetsToRead]:
        """Published batches whose rows were not looked at for so long."""
        with self._connection.reading() as transaction:
            rows = transaction.rows("offsets_due", feed=feed, every=every, most=most)
        return [OffsetsToRead(BatchId(row.batch_id), row.record_count) for row in rows]

    def record_offsets_look(self, batch_id: BatchId, *, is_clean: bool) -> None:
        """Keep that the batch's offset columns were read again."""
        with self._connection.writing() as transaction:
            transaction.change("record_offsets_look", batch_id=batch_id, is_clean=is_clean)

    def directory_looks(self, feed: FeedName, every: timedelta) -> Mapping[BatchId, DirectoryLook]:
        """The directories that were as committed."""
        with self._connection.reading() as transaction:
            rows = transaction.rows("directory_looks", feed=feed, every=every)
        return {BatchId(row.batch_id): DirectoryLook(row.digest, row.shown_as) for row in rows}

    def note_directory_looks(
        self,
        as_committed: Mapping[BatchId, DirectoryLook],
        others: Collection[BatchId],
        *,
        compared_at: datetime,
    ) -> None:
        """Keep that directories are as committed, and forget the others."""
        # Two transactions: of two looks at once each may forget what the other one keeps.
        with self._connection.writing() as transaction:
            transaction.change("forget_directory_looks", batch_ids=list(others))
        with self._connection.writing() as transaction:
            transaction.change(
                "note_directory_looks", **_columns(as_committed), compared_at=compared_at
            )

    def note_shown_directories(self, looks: Mapping[BatchId, DirectoryLook]) -> None:
        """Keep how directories are shown whose entries are those on record."""
        with self._connection.writing() as transaction:
            transaction.change("note_shown_directories", **_columns(looks))

    def compared_hours(self, feed: FeedName) -> Mapping[str, str]:
        """The hours' directories that were compared, each with its version."""
        with self._connection.reading() as transaction:
            return {
                each.path: each.version for each in transaction.rows("compared_hours", feed=feed)
            }

    def note_hours(self, feed: FeedName, versions: Mapping[str, str]) -> None:
        """Keep in which versions hours' directories were compared."""
        with self._connection.writing() as transaction:
            transaction.change(
                "note_hours", feed=feed, paths=list(versions), versions=list(versions.values())
            )


def _columns(looks: Mapping[BatchId, DirectoryLook]) -> dict[str, list[Any]]:
    return {
        "batch_ids": list(looks),
        "digests": [each.digest for each in looks.values()],
        "shown_as": [each.shown_as for each in looks.values()],
    }


def _place(row: Any) -> tuple[BatchPath, AttemptId, bool, bytes, bytes | None]:
    hour = in_utc(row.label).replace(minute=0, second=0, microsecond=0)
    return (
        BatchPath(row.root, FeedName(row.feed), row.ordinal, hour, BatchId(row.batch_id)),
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
