"""What people and reconciliation ask: batches, files, proofs, generations, losses."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final

from tallystick.domain.batches.batch import BatchStatus, WaitingBatch
from tallystick.domain.batches.landed import FileSlice, LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.states import BatchState, Isolation
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import AttemptId, BatchId, FeedName
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.feed_edits import FeedOnRecord
from tallystick.errors import BatchUnknown
from tallystick.ledger.connection import Transaction
from tallystick.ledger.rows import (
    as_stored_now,
    attempt_in,
    batch_statuses,
    generation_account,
    in_utc,
    manifest_of,
    manifests_of,
)
from tallystick.ports.batches import AttemptRecord, BatchRecord, FileRecord

_BLOCK: Final = 32_768
"""As `file` counts spans."""


def batch(transaction: Transaction, batch_id: BatchId) -> BatchStatus:
    """The batch as it stands now; raises BatchUnknown."""
    rows = transaction.rows("batch", batch_id=batch_id)
    if not rows:
        raise BatchUnknown(batch_id)
    return batch_statuses(transaction, rows)[0]


def claimed_logs(transaction: Transaction, batch_id: BatchId) -> list[GenerationAccount]:
    """The generations of which the batch claims offsets, by partition."""
    rows = transaction.rows("claimed_generations", batch_id=batch_id)
    return [generation_account(row) for row in rows]


def waiting(transaction: Transaction, feed: FeedName) -> list[WaitingBatch]:
    """Batches that wait for somebody, and for how long, oldest first."""
    code = FindingCode.UNFINISHED_BATCH.value
    return [
        WaitingBatch(BatchId(row.batch_id), BatchState(row.state), row.seconds)
        for row in transaction.rows("waiting_batches", feed=feed, code=code)
    ]


def on_record(transaction: Transaction, feed: FeedName, topic: str) -> FeedOnRecord:
    """What the feed has landed, and which others have landed this topic."""
    row = transaction.one("on_record", feed=feed, topic=topic)
    isolations = frozenset(map(Isolation, row.isolations))
    return FeedOnRecord(row.topic, row.roots, isolations, row.others, row.retired)


def batches(transaction: Transaction, feed: FeedName) -> list[BatchRecord]:
    """All batches of the feed, oldest first, with their attempts and proven ranges."""
    attempts: defaultdict[str, list[AttemptRecord]] = defaultdict(list)
    for row in transaction.rows("attempts", feed=feed):
        attempts[row.batch_id].append(_attempt_record(row))
    rows = transaction.rows("batches", feed=feed)
    manifests = manifests_of(transaction, [row.batch_id for row in rows])
    statuses = batch_statuses(transaction, rows, manifests)
    return [
        BatchRecord(
            status=status,
            attempts=attempts[row.batch_id],
            ranges=manifests[row.batch_id].ranges if row.batch_id in manifests else (),
            planned_at=in_utc(row.planned_at),
            committed_at=in_utc(row.committed_at) if row.committed_at else None,
            published_at=in_utc(row.published_at) if row.published_at else None,
        )
        for row, status in zip(rows, statuses, strict=True)
    ]


def files(transaction: Transaction, feed: FeedName) -> list[FileRecord]:
    """All committed files of the feed, in the order of commit, then by name."""
    rows = transaction.rows("files", feed=feed)
    manifests = manifests_of(transaction, sorted({row.batch_id for row in rows}))
    return [
        FileRecord(
            batch_id=BatchId(row.batch_id),
            attempt_id=AttemptId(row.committed_by),
            plan=manifests[BatchId(row.batch_id)].plan,
            file=_landed_file(row),
            is_published=row.state == BatchState.PUBLISHED.value,
        )
        for row in rows
    ]


def committed_manifests(transaction: Transaction, feed: FeedName) -> list[Manifest]:
    """The proofs on record, in the order of their commits."""
    rows = transaction.rows("committed_manifests", feed=feed)
    return [as_stored_now(manifest_of(row), row) for row in rows]


def bytes_per_record(transaction: Transaction, feed: FeedName) -> float | None:
    """Landed bytes per row over the feed's newest batches; None before the first."""
    found: float | None = transaction.one("bytes_per_record", feed=feed).bytes_per_record
    return found


def generations(transaction: Transaction, feed: FeedName) -> dict[int, list[GenerationAccount]]:
    """All generations by partition, oldest first."""
    found: defaultdict[int, list[GenerationAccount]] = defaultdict(list)
    for row in transaction.rows("all_generations", feed=feed):
        found[row.partition].append(generation_account(row))
    return dict(found)


def lost(
    transaction: Transaction, feed: FeedName
) -> list[tuple[GenerationAccount, OffsetRange, str]]:
    """Ranges recorded as lost, with generation and finding code, by partition and offset."""
    rows = transaction.rows("lost_ranges", feed=feed)
    if not rows:
        return []
    accounts = {
        each.generation_id: each
        for of_partition in generations(transaction, feed).values()
        for each in of_partition
    }
    found = []
    for row in rows:
        account = accounts[row.generation_id]
        offsets = OffsetRange(account.partition, row.from_offset, row.until_offset)
        found.append((account, offsets, str(row.loss_code)))
    return found


def _attempt_record(row: Any) -> AttemptRecord:
    return AttemptRecord(
        attempt=attempt_in(row),
        started_at=in_utc(row.started_at),
        application_id=row.application_id,
        ended_at=in_utc(row.ended_at) if row.ended_at else None,
        outcome=row.outcome,
    )


def _landed_file(row: Any) -> LandedFile:
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
