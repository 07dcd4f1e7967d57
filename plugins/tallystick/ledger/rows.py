"""Rows of the ledger as values of the domain. Decides nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from tallystick.domain.batches.batch import (
    Attempt,
    BatchPlan,
    BatchStatus,
    CommittedFile,
    PlannedRange,
)
from tallystick.domain.batches.manifest import Manifest, TailAnchor
from tallystick.domain.batches.manifest_texts import whole_text
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import (
    AttemptId,
    BatchId,
    FeedName,
    FencingToken,
    GenerationId,
    Owner,
)
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.rows import record_hash
from tallystick.domain.window import Window
from tallystick.errors import LedgerRefused
from tallystick.ledger.connection import Transaction
from tallystick.ledger.texts import decompressed

_STATES: Final = {each.value: each for each in GenerationState}


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed row."""

    range_id: int
    batch_id: BatchId
    generation_id: GenerationId
    offsets: OffsetRange


def window_in(row: Any) -> Window | None:
    """The window in a row; None where it has none."""
    return Window(row.window_from, row.window_until) if row.window_from else None


def offsets_in(row: Any) -> OffsetRange:
    """The offsets in a row, with the partition whose they are."""
    return OffsetRange(TopicPartition(row.topic, row.partition), row.from_offset, row.until_offset)


def batch_path_in(row: Any) -> BatchPath:
    """Where a row's batch lies once it is published."""
    hour = row.label.replace(minute=0, second=0, microsecond=0)
    return BatchPath(row.root, FeedName(row.feed), row.ordinal, hour, BatchId(row.batch_id))


def offset_columns(ranges: Sequence[tuple[int, OffsetRange]]) -> dict[str, object]:
    """Offsets with their generations, as the columns that statements take."""
    return {
        "generation_ids": [each for each, _ in ranges],
        "from_offsets": [each.from_offset for _, each in ranges],
        "until_offsets": [each.until_offset for _, each in ranges],
    }


def generation_account(row: Any) -> GenerationAccount:
    """One generation with its tail."""
    partition = TopicPartition(row.topic, row.partition)
    # A hash of another version can't be compared: the log's end and epoch speak alone then.
    anchor = (
        TailAnchor(row.record_offset, row.leader_epoch, row.content_hash, row.hash_version)
        if row.hash_version == record_hash.VERSION
        else None
    )
    beyond, unreadable = _tail(partition, row) if row.from_offsets else ((), ())
    return GenerationAccount(
        generation_id=GenerationId(row.generation_id),
        partition=partition,
        cluster_id=row.cluster_id,
        topic_id=row.topic_id,
        ordinal=row.ordinal,
        state=_STATES[row.state],
        first_offset=row.first_offset,
        frontier=row.frontier,
        beyond=beyond,
        last_seen_until=row.last_seen_until,
        anchor=anchor,
        read_until=row.read_until,
        seen_epoch=row.seen_epoch,
        unreadable=unreadable,
    )


def _tail(
    partition: TopicPartition, row: Any
) -> tuple[tuple[OffsetRange, ...], tuple[OffsetRange, ...]]:
    """The ranges beyond the frontier, and those of them that are unreadable."""
    bounds = zip(row.from_offsets, row.until_offsets, strict=True)
    beyond = tuple(OffsetRange(partition, *each) for each in bounds)
    told = zip(beyond, row.are_unreadable, strict=True)
    return beyond, tuple(offsets for offsets, is_unreadable in told if is_unreadable)


def claims_of(transaction: Transaction, batch_ids: Sequence[str]) -> list[Claim]:
    """What these batches still claim, by batch and partition."""
    return [
        Claim(
            row.range_id,
            BatchId(row.batch_id),
            GenerationId(row.generation_id),
            offsets_in(row),
        )
        for row in transaction.rows("claims_of", batch_ids=list(batch_ids))
    ]


def manifest_of(row: Any) -> Manifest:
    """The proof in a row, with its hashes while they are kept; raises LedgerRefused."""
    return manifest_in(manifest_text(row, account_text(row)))


def manifest_in(text: str) -> Manifest:
    """The proof that a text on record says; raises LedgerRefused."""
    try:
        return Manifest.from_json(text)
    except ValueError as error:
        raise LedgerRefused("verification", f"a manifest can't be read: {error}") from error


def as_stored_now(manifest: Manifest, row: Any) -> Manifest:
    """A committed proof, with the place and the checksums that its files have by now.

    Where they lie and how they are stored may change, with a record of its own.
    """
    files = manifest.files
    if row.checksums:
        files = tuple(
            replace(each, checksum=row.checksums.get(each.name, each.checksum)) for each in files
        )
    return replace(manifest, plan=replace(manifest.plan, root=row.root), files=files)


def manifest_text(row: Any, account: str) -> str:
    """The very text of the proof in a row whose account this is, or the account where that is all
    that is kept; raises LedgerRefused when it is not the one verified.
    """
    try:
        if row.hashes is None:
            return account
        return whole_text(account, json.loads(decompressed(row.hashes)))
    except ValueError as error:
        raise LedgerRefused("verification", f"a manifest can't be read: {error}") from error


def account_text(row: Any) -> str:
    """What the proof in a row says without the hashes of last records, which are not kept for ever;
    raises LedgerRefused when it is not the one on record.
    """
    try:
        account = decompressed(row.manifest)
    except ValueError as error:
        raise LedgerRefused("verification", f"a manifest can't be read: {error}") from error
    if sha256(account.encode()).digest() != row.sha256:
        raise LedgerRefused("verification", "a manifest is not the one whose hash is on record")
    return account


def manifests_of(transaction: Transaction, batch_ids: Sequence[str]) -> dict[BatchId, Manifest]:
    """The committed proofs of those of the batches that are committed."""
    if not batch_ids:
        return {}
    rows = transaction.rows("manifests_of", batch_ids=list(batch_ids))
    return {BatchId(row.batch_id): as_stored_now(manifest_of(row), row) for row in rows}


def batch_rows(
    transaction: Transaction,
    *,
    feed: FeedName | None = None,
    batch_id: BatchId | None = None,
    only_unfinished: bool = False,
) -> list[Any]:
    """The rows of a feed's batches, oldest first, or of the one batch."""
    return transaction.rows(
        "batches", feed=feed, batch_id=batch_id, only_unfinished=only_unfinished
    )


def batch_statuses(
    transaction: Transaction,
    rows: Sequence[Any],
    proofs: Mapping[BatchId, Manifest] | None = None,
) -> list[BatchStatus]:
    """Batches as they stand, in the order of the rows.

    Unfinished ones have the ranges that they still claim, committed ones those of their proof,
    abandoned ones none. `proofs` are those of the committed ones, where they were read already.
    """
    committed = [row.batch_id for row in rows if row.committed_by is not None]
    open_ids = [
        row.batch_id
        for row in rows
        if row.committed_by is None and row.state != BatchState.ABANDONED.value
    ]
    manifests = manifests_of(transaction, committed) if proofs is None else proofs
    claimed: dict[BatchId, list[PlannedRange]] = {}
    for claim in claims_of(transaction, open_ids) if open_ids else ():
        planned = PlannedRange(claim.generation_id, claim.offsets)
        claimed.setdefault(claim.batch_id, []).append(planned)
    replaced: dict[BatchId, list[CommittedFile]] = {}
    for row in transaction.rows("replaced_files", batch_ids=open_ids) if open_ids else ():
        file = CommittedFile(BatchId(row.old_batch_id), row.name)
        replaced.setdefault(BatchId(row.batch_id), []).append(file)
    return [_status(row, manifests, claimed, replaced) for row in rows]


def attempt_in(row: Any) -> Attempt:
    """The attempt in its row."""
    return Attempt(
        AttemptId(row.attempt_id), BatchId(row.batch_id), FencingToken(row.token), Owner(row.owner)
    )


def _status(
    row: Any,
    manifests: Mapping[BatchId, Manifest],
    claimed: Mapping[BatchId, Iterable[PlannedRange]],
    replaced: Mapping[BatchId, Iterable[CommittedFile]],
) -> BatchStatus:
    batch_id = BatchId(row.batch_id)
    manifest = manifests.get(batch_id)
    seconds = row.lease_seconds_left
    is_held = seconds is not None and seconds > 0
    return BatchStatus(
        plan=manifest.plan
        if manifest
        else _plan(row, tuple(claimed.get(batch_id, ())), tuple(replaced.get(batch_id, ()))),
        state=BatchState(row.state),
        newest_token=FencingToken(row.newest_token),
        applications=row.applications,
        committed_by=AttemptId(row.committed_by) if row.committed_by else None,
        lease_seconds_left=seconds if is_held else 0.0,
        holder=Owner(row.holder) if is_held else None,
    )


def _plan(
    row: Any, ranges: tuple[PlannedRange, ...], replaces: tuple[CommittedFile, ...]
) -> BatchPlan:
    return BatchPlan(
        batch_id=BatchId(row.batch_id),
        feed=FeedName(row.feed),
        root=row.root,
        topic=row.topic,
        cluster_id=row.cluster_id,
        topic_id=row.topic_id,
        ordinal=row.ordinal,
        label=row.label,
        window=window_in(row),
        ranges=ranges,
        replaces=replaces,
    )
