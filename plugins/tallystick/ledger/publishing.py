"""What follows the commit: what is to be shown, what was shown, what may be swept."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tallystick.domain.attempts.last_copies import AtRisk, CommittedCopy
from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.batches.states import BatchState, RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import AttemptId, BatchId, FeedName, Owner
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.rules.registry import codes_with
from tallystick.domain.rules.rule import Trait
from tallystick.errors import BatchUnknown, LedgerRefused
from tallystick.ledger.connection import Transaction
from tallystick.ledger.rows import (
    account_text,
    as_stored_now,
    attempt_in,
    in_utc,
    manifest_in,
    manifest_text,
)
from tallystick.ports.attempts import DeadAttempt
from tallystick.ports.batches import CommittedBatch


def committed_batch(transaction: Transaction, batch_id: BatchId) -> CommittedBatch | None:
    """What publishing needs; None before the commit."""
    row = transaction.row("committed_batch", batch_id=batch_id)
    return _committed(row) if row is not None else None


def unpublished(transaction: Transaction, feed: FeedName) -> list[CommittedBatch]:
    """Batches that are committed and not published, in the order of their commits."""
    return [_committed(row) for row in transaction.rows("unpublished", feed=feed)]


def mark_published(transaction: Transaction, batch_id: BatchId, owner: Owner | None) -> None:
    """The batch is shown to readers, and N3 of it ends; a second call changes nothing."""
    if transaction.change("mark_published", batch_id=batch_id, owner=owner):
        code = FindingCode.UNFINISHED_BATCH.value
        transaction.change("end_not_shown", batch_id=batch_id, code=code)
        return
    batch = transaction.row("batch", batch_id=batch_id)
    if batch is None:
        raise BatchUnknown(batch_id)
    if batch.state != BatchState.PUBLISHED.value:
        raise LedgerRefused("mark_published", f"batch {batch_id} is {batch.state}, not committed")


def published_by(transaction: Transaction, feed: FeedName, owner: Owner) -> list[BatchId]:
    """What this owner has published, in all its tries."""
    rows = transaction.rows("published_by", feed=feed, owner=owner)
    return [BatchId(row.batch_id) for row in rows]


def dead_attempts(transaction: Transaction, feed: FeedName) -> list[DeadAttempt]:
    """Attempts that will never commit any more, or are published; not yet swept."""
    return [
        DeadAttempt(attempt_in(row), row.root, row.has_committed, row.is_over)
        for row in transaction.rows("dead_attempts", feed=feed)
    ]


def batches_over(
    transaction: Transaction, feed: FeedName, batch_ids: Collection[BatchId]
) -> list[BatchId]:
    """Those of the batches that are the feed's, and published or abandoned."""
    rows = transaction.rows("batches_over", feed=feed, batch_ids=list(batch_ids))
    return [BatchId(row.batch_id) for row in rows]


def offsets_at_risk(
    transaction: Transaction, batch_ids: Collection[BatchId]
) -> dict[BatchId, list[AtRisk]]:
    """By batch, what it has claimed and no commit holds; a batch of which there is none is left
    out.
    """
    found: dict[BatchId, list[AtRisk]] = {}
    rows = transaction.rows(
        "offsets_at_risk",
        batch_ids=list(batch_ids),
        doubting_rows=codes_with(Trait.DOUBTS_ROWS),
        doubting_a_file=codes_with(Trait.DOUBTS_FILE),
        given_up=FindingCode.COMMITTED_FILE_MISSING.value,
    )
    for row in rows:
        partition = TopicPartition(row.topic, row.partition)
        risk = AtRisk(
            OffsetRange(partition, row.from_offset, row.until_offset),
            RangeState(row.state),
            GenerationState(row.log_state),
            row.cluster_id,
            row.topic_id,
            row.replaces,
        )
        found.setdefault(BatchId(row.batch_id), []).append(risk)
    return found


def committed_copies(transaction: Transaction, batch_id: BatchId) -> list[CommittedCopy]:
    """The committed files that hold offsets of this batch."""
    return [
        CommittedCopy(
            _directory(row),
            row.name,
            row.length_bytes,
            row.checksum,
            OffsetRange(
                TopicPartition(row.topic, row.partition), row.from_offset, row.until_offset
            ),
        )
        for row in transaction.rows("committed_copies", batch_id=batch_id)
    ]


def _directory(row: Any) -> str:
    batch_id = BatchId(row.batch_id)
    if row.state != BatchState.PUBLISHED.value:
        return StagingPath(row.root, batch_id, AttemptId(row.committed_by)).data
    hour = in_utc(row.label).replace(minute=0, second=0, microsecond=0)
    return str(BatchPath(row.root, FeedName(row.feed), row.ordinal, hour, batch_id))


def committed_among(
    transaction: Transaction, feed: FeedName, batch_ids: Collection[BatchId]
) -> list[BatchId]:
    """Those of the batches that are the feed's, and committed or published."""
    rows = transaction.rows("committed_among", feed=feed, batch_ids=list(batch_ids))
    return [BatchId(row.batch_id) for row in rows]


def roots(transaction: Transaction, feed: FeedName, *, with_former: bool) -> list[str]:
    """Every root below which the feed has batches."""
    return [row.root for row in transaction.rows("roots", feed=feed, with_former=with_former)]


def record_move(
    transaction: Transaction,
    batch_ids: Collection[BatchId],
    from_root: str,
    to_root: str,
    by: Owner,
) -> None:
    """Published batches lie below another root by now."""
    moved = {"batch_ids": list(batch_ids), "from_root": from_root, "to_root": to_root}
    transaction.change("enter_move", **moved, owner=by)
    transaction.change("move_batches", **moved)


def mark_swept(transaction: Transaction, attempt_id: AttemptId) -> None:
    """The attempt's staging directory is gone."""
    transaction.change("mark_swept", attempt_id=attempt_id)


def _committed(row: Any) -> CommittedBatch:
    account = account_text(row)
    text = manifest_text(row, account)
    return CommittedBatch(
        manifest=as_stored_now(manifest_in(text), row),
        manifest_text=text if row.hashes is not None else None,
        manifest_sha256=row.file_sha256,
        account=account,
        attempt_id=AttemptId(row.committed_by),
        state=BatchState(row.state),
    )
