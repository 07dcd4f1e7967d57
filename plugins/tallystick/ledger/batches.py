"""Batches and their files, generations and losses: what people and reconciliation ask."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tallystick.domain.batches.batch import Attempt, BatchPlan, BatchStatus, WaitingBatch
from tallystick.domain.batches.landed import FileSlice, LandedFile, LateRows
from tallystick.domain.batches.manifest import AccountedRange
from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.batches.states import BatchState, HoleClass, Isolation
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.identities import AttemptId, BatchId, FeedName, GenerationId
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.feed_edits import FeedOnRecord
from tallystick.domain.report.whereabouts import OffsetRecord
from tallystick.domain.rules.n3_unfinished_batch import NOT_SHOWN
from tallystick.errors import BatchUnknown
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.rows import (
    attempt_in,
    batch_rows,
    batch_statuses,
    claims_of,
    generation_account,
    manifests_of,
)

_BLOCK: Final = 32_768
"""As `file` counts spans."""


@dataclass(frozen=True, slots=True)
class BatchToLand:
    """A batch, and what its landing rests on."""

    status: BatchStatus
    logs: Sequence[GenerationAccount]
    """Of which it claims offsets, by partition; none once it is over."""
    bytes_per_record: float | None
    """Landed bytes per row over the feed's newest batches; None before the first."""


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt as `tallystick batches` shows it."""

    attempt: Attempt
    started_at: datetime
    application_id: str | None
    ended_at: datetime | None
    outcome: str | None
    """`committed`, `failed: ...`, or None while it lives or after it was killed."""


@dataclass(frozen=True, slots=True)
class CheckRecord:
    """The newest deep look at a batch, of one level."""

    level: Level
    is_clean: bool
    is_complete: bool
    """False where not all could be read: that proves nothing."""
    checked_at: datetime


@dataclass(frozen=True, slots=True)
class Replaced:
    """Repairs hold what a batch has landed."""

    by: Sequence[BatchId]
    is_whole: bool
    """True where readers read no file of the batch any more."""


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """One batch as `tallystick batches` and its page show it."""

    status: BatchStatus
    attempts: Sequence[AttemptRecord]
    ranges: Sequence[AccountedRange]
    """Empty before the commit."""
    planned_at: datetime
    committed_at: datetime | None
    published_at: datetime | None
    late: LateRows | None
    checks: Sequence[CheckRecord]
    """By level; empty until one was made."""
    replaced: Replaced | None
    """None while all its files are read."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One committed file, as `tallystick files` and its batch's page show it."""

    batch_id: BatchId
    attempt_id: AttemptId
    plan: BatchPlan
    file: LandedFile
    is_published: bool
    replaced_by: BatchId | None
    """The repair that holds its offsets since; readers read it no more."""

    @property
    def path(self) -> str:
        """Where the file lies now."""
        if self.is_published:
            return f"{BatchPath.of(self.plan)}/{self.file.name}"
        return f"{StagingPath.of(self.plan, self.attempt_id).data}/{self.file.name}"


class Batches(Tables):
    """Batches as they stand, with the logs whose offsets they hold."""

    def batch(self, batch_id: BatchId) -> BatchStatus:
        """The batch as it stands now; raises BatchUnknown."""
        with self._connection.reading() as transaction:
            return batch_status(transaction, batch_id)

    def batch_to_land(self, batch_id: BatchId) -> BatchToLand:
        """All that a landing asks of the batch, as of one instant; raises BatchUnknown."""
        with self._connection.reading() as transaction:
            status = batch_status(transaction, batch_id)
            logs = _claimed_logs(transaction, batch_id)
            size = transaction.one("bytes_per_record", feed=status.plan.feed).bytes_per_record
            return BatchToLand(status, logs, size)

    def claimed_logs(self, batch_id: BatchId) -> Sequence[GenerationAccount]:
        """The generations of which the batch claims offsets, by partition; none once it is over."""
        with self._connection.reading() as transaction:
            return _claimed_logs(transaction, batch_id)

    def waiting(self, feed: FeedName) -> Sequence[WaitingBatch]:
        """The feed's unfinished batches that nobody holds, oldest first; each with how long that
        has been so.

        One that is committed is held until it is published, or on record as not published (N3).
        """
        code = FindingCode.UNFINISHED_BATCH.value
        return [
            WaitingBatch(BatchId(row.batch_id), BatchState(row.state), row.seconds)
            for row in self._connection.rows(
                "waiting_batches", feed=feed, code=code, name=NOT_SHOWN
            )
        ]

    def on_record(self, feed: FeedName, topic: str) -> FeedOnRecord:
        """What the feed's file is compared with; `topic` is the one that the file names."""
        row = self._connection.one("on_record", feed=feed, topic=topic)
        isolations = frozenset(map(Isolation, row.isolations))
        return FeedOnRecord(row.topic, row.roots, isolations, row.others, row.retired)

    def batches(
        self, feed: FeedName | None = None, batch_id: BatchId | None = None
    ) -> Sequence[BatchRecord]:
        """All batches of the feed, oldest first; or the one of this id, if there is one."""
        attempts: defaultdict[str, list[AttemptRecord]] = defaultdict(list)
        checks: defaultdict[str, list[CheckRecord]] = defaultdict(list)
        with self._connection.reading() as transaction:
            rows = batch_rows(transaction, feed=feed, batch_id=batch_id)
            ids = [row.batch_id for row in rows]
            for row in transaction.rows("attempts", batch_ids=ids):
                attempts[row.batch_id].append(_attempt_record(row))
            for row in transaction.rows("newest_checks", batch_ids=ids):
                found = CheckRecord(Level(row.level), row.is_clean, row.is_complete, row.checked_at)
                checks[row.batch_id].append(found)
            replaced = replaced_among(transaction, ids)
            manifests = manifests_of(transaction, ids)
            statuses = batch_statuses(transaction, rows, manifests)
        return [
            BatchRecord(
                status=status,
                attempts=attempts[row.batch_id],
                ranges=manifests[row.batch_id].ranges if row.batch_id in manifests else (),
                planned_at=row.planned_at,
                committed_at=row.committed_at,
                published_at=row.published_at,
                late=manifests[row.batch_id].late if row.batch_id in manifests else None,
                checks=checks[row.batch_id],
                replaced=replaced.get(row.batch_id),
            )
            for row, status in zip(rows, statuses, strict=True)
        ]

    def feed_of_batch(self, batch_id: BatchId) -> FeedName | None:
        """Whose batch it is; None where there is none of this id."""
        with self._connection.reading() as transaction:
            rows = batch_rows(transaction, batch_id=batch_id)
        return FeedName(rows[0].feed) if rows else None

    def ranges_of(self, batch_ids: Sequence[BatchId]) -> Mapping[BatchId, Sequence[OffsetRange]]:
        """What these batches claim, or have landed; none of those that are given up."""
        found: defaultdict[BatchId, list[OffsetRange]] = defaultdict(list)
        with self._connection.reading() as transaction:
            for claim in claims_of(transaction, batch_ids):
                found[claim.batch_id].append(claim.offsets)
            for batch_id, manifest in manifests_of(transaction, batch_ids).items():
                found[batch_id] = [each.planned.offsets for each in manifest.ranges]
        return found

    def offset_records(self, feed: FeedName, partition: int, offset: int) -> Sequence[OffsetRecord]:
        """What is on record of an offset in each life of the partition's log, newest first."""
        rows = self._connection.rows(
            "offset_records", feed=feed, partition=partition, offset=offset
        )
        return [
            OffsetRecord(
                ordinal=row.ordinal,
                topic_id=row.topic_id,
                has_ended=row.has_ended,
                first_offset=row.first_offset,
                begins_unseen=row.begins_unseen,
                state=row.state,
                batch_id=row.batch_id,
                loss_code=row.loss_code,
                hole=HoleClass(row.hole) if row.hole else None,
            )
            for row in rows
        ]

    def batches_at(self, feed: FeedName, at: datetime, *, by_window: bool) -> Sequence[BatchId]:
        """Batches that are not given up, and have a window which holds this instant; else those of
        the first plan after it that made any.
        """
        rows = self._connection.rows("batches_at", feed=feed, at=at, by_window=by_window)
        return [BatchId(row.batch_id) for row in rows]

    def files(
        self, feed: FeedName | None = None, batch_id: BatchId | None = None
    ) -> Sequence[FileRecord]:
        """All files of the feed that are read, in the order of commit, then by name; or all that
        this batch has committed.
        """
        with self._connection.reading() as transaction:
            rows = transaction.rows("files", feed=feed, batch_id=batch_id)
            manifests = manifests_of(transaction, sorted({row.batch_id for row in rows}))
        return [
            FileRecord(
                batch_id=BatchId(row.batch_id),
                attempt_id=AttemptId(row.committed_by),
                plan=manifests[BatchId(row.batch_id)].plan,
                file=landed_file(row),
                is_published=row.state == BatchState.PUBLISHED.value,
                replaced_by=row.replaced_by,
            )
            for row in rows
        ]

    def generations(self, feed: FeedName) -> Mapping[int, Sequence[GenerationAccount]]:
        """All generations by partition, oldest first."""
        found: defaultdict[int, list[GenerationAccount]] = defaultdict(list)
        with self._connection.reading() as transaction:
            for each in generations(transaction, feed).values():
                found[each.partition.partition].append(each)
        return dict(found)

    def lost(self, feed: FeedName) -> Sequence[tuple[GenerationAccount, OffsetRange, str]]:
        """Ranges recorded as lost, with generation and finding code, by partition and offset."""
        with self._connection.reading() as transaction:
            rows = transaction.rows("lost_ranges", feed=feed)
            accounts = generations(transaction, feed) if rows else {}
        found = []
        for row in rows:
            account = accounts[row.generation_id]
            offsets = OffsetRange(account.partition, row.from_offset, row.until_offset)
            found.append((account, offsets, str(row.loss_code)))
        return found


def batch_status(transaction: Transaction, batch_id: BatchId) -> BatchStatus:
    """The batch as it stands; raises BatchUnknown."""
    rows = batch_rows(transaction, batch_id=batch_id)
    if not rows:
        raise BatchUnknown(batch_id)
    return batch_statuses(transaction, rows)[0]


def replaced_among(
    transaction: Transaction, batch_ids: Sequence[BatchId]
) -> Mapping[BatchId, Replaced]:
    """Those of the batches of which a repair holds something, and which one."""
    rows = transaction.rows("replaced_batches", batch_ids=list(batch_ids))
    return {row.batch_id: Replaced(row.replaced_by, row.is_whole) for row in rows}


def _claimed_logs(transaction: Transaction, batch_id: BatchId) -> list[GenerationAccount]:
    rows = transaction.rows("claimed_generations", batch_id=batch_id)
    return [generation_account(row) for row in rows]


def generations(
    transaction: Transaction, feed: FeedName
) -> Mapping[GenerationId, GenerationAccount]:
    """All generations of the feed by their ids; of one partition the oldest first."""
    found = map(generation_account, transaction.rows("all_generations", feed=feed))
    return {each.generation_id: each for each in found}


def _attempt_record(row: Any) -> AttemptRecord:
    return AttemptRecord(
        attempt=attempt_in(row),
        started_at=row.started_at,
        application_id=row.application_id,
        ended_at=row.ended_at,
        outcome=row.outcome,
    )


def landed_file(row: Any) -> LandedFile:
    """A committed file as its row keeps it."""
    held = zip(
        row.partitions or (),
        row.first_offsets or (),
        row.span_blocks or (),
        row.span_rests or (),
        row.hole_counts or (),
        strict=True,
    )
    return LandedFile(
        name=row.name,
        length_bytes=row.length_bytes,
        checksum=row.checksum,
        slices=tuple(
            FileSlice(partition, first, first + span - 1, span - holes)
            for partition, first, blocks, rest, holes in held
            for span in (blocks * _BLOCK + rest,)
        ),
    )
