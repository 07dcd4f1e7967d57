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
from tallystick.domain.batches.states import BatchState, Isolation
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import AttemptId, BatchId, FeedName, GenerationId
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.feed_edits import FeedOnRecord
from tallystick.domain.rules.n3_unfinished_batch import NOT_SHOWN
from tallystick.errors import BatchUnknown
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.rows import (
    attempt_in,
    batch_rows,
    batch_statuses,
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
class BatchRecord:
    """One batch as `tallystick batches` shows it."""

    status: BatchStatus
    attempts: Sequence[AttemptRecord]
    ranges: Sequence[AccountedRange]
    """Empty before the commit."""
    planned_at: datetime
    committed_at: datetime | None
    published_at: datetime | None
    late: LateRows | None


@dataclass(frozen=True, slots=True)
class FileRecord:
    """One committed file, as `tallystick files` shows it."""

    batch_id: BatchId
    attempt_id: AttemptId
    plan: BatchPlan
    file: LandedFile
    is_published: bool


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

    def batches(self, feed: FeedName) -> Sequence[BatchRecord]:
        """All batches of the feed, oldest first."""
        attempts: defaultdict[str, list[AttemptRecord]] = defaultdict(list)
        with self._connection.reading() as transaction:
            for row in transaction.rows("attempts", feed=feed):
                attempts[row.batch_id].append(_attempt_record(row))
            rows = batch_rows(transaction, feed=feed)
            manifests = manifests_of(transaction, [row.batch_id for row in rows])
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
            )
            for row, status in zip(rows, statuses, strict=True)
        ]

    def files(self, feed: FeedName) -> Sequence[FileRecord]:
        """All committed files of the feed, in the order of commit, then by name."""
        with self._connection.reading() as transaction:
            rows = transaction.rows("files", feed=feed)
            manifests = manifests_of(transaction, sorted({row.batch_id for row in rows}))
        return [
            FileRecord(
                batch_id=BatchId(row.batch_id),
                attempt_id=AttemptId(row.committed_by),
                plan=manifests[BatchId(row.batch_id)].plan,
                file=landed_file(row),
                is_published=row.state == BatchState.PUBLISHED.value,
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
