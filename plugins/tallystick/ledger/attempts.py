"""Attempts: tokens, leases, and what is written down while one lives.

Every change compares the attempt's token with the newest of its batch, on the batch's own row.
"""

from __future__ import annotations

import json
from datetime import timedelta
from hashlib import sha256
from typing import Any

from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.manifest_texts import parted
from tallystick.domain.batches.states import BatchState
from tallystick.domain.batches.taking import Beginning, beginning, is_free_for
from tallystick.domain.identities import AttemptId, BatchId, FencingToken, Owner
from tallystick.errors import AttemptFenced, BatchBusy, BatchUnknown, LedgerError, LedgerRefused
from tallystick.ledger.compressed import compressed
from tallystick.ledger.connection import Transaction
from tallystick.ledger.rows import attempt_in
from tallystick.ledger.texts import storable


def locked_batch(transaction: Transaction, batch_id: BatchId) -> Any:
    """The batch's row, locked until the transaction ends; raises BatchUnknown."""
    row = transaction.row("lock_batch", batch_id=batch_id)
    if row is None:
        raise BatchUnknown(batch_id)
    return row


def read_attempt(transaction: Transaction, attempt_id: AttemptId) -> Attempt | None:
    """The attempt as it was begun; None for one that this ledger never saw."""
    row = transaction.row("attempt", attempt_id=attempt_id)
    return attempt_in(row) if row is not None else None


def unheard_seconds(transaction: Transaction, attempt_id: AttemptId) -> float | None:
    """Since the attempt was last heard of; None for one that this ledger never saw."""
    row = transaction.row("unheard_seconds", attempt_id=attempt_id)
    return None if row is None else float(row.seconds)


def require_newest(transaction: Transaction, attempt: Attempt, batch: Any) -> None:
    """Raise what `fenced` says unless the attempt may still commit the batch, whose row is locked:
    its token is the newest, and the batch is unfinished.
    """
    if batch.newest_token != attempt.token or not BatchState(batch.state).is_unfinished:
        raise fenced(transaction, attempt)


def begin_attempt(
    transaction: Transaction,
    batch_id: BatchId,
    *,
    attempt_id: AttemptId,
    owner: Owner,
    lease: timedelta,
) -> Attempt | None:
    """A new attempt with the next token, or the same one again while it is the newest; None when
    the batch is over.
    """
    batch = locked_batch(transaction, batch_id)
    known = read_attempt(transaction, attempt_id)
    if known and known.batch_id != batch_id:
        raise LedgerRefused(
            "make_attempt",
            f"attempt {attempt_id} belongs to batch {known.batch_id}, not {batch_id}",
        )
    seconds = batch.lease_seconds_left or 0.0
    answer = beginning(
        BatchState(batch.state),
        batch.newest_token,
        known.token if known else None,
        is_free=is_free_for(owner, batch.holder, seconds),
    )
    if known and answer is Beginning.FENCED:
        raise AttemptFenced(batch_id, known.token, batch.newest_token)
    if answer is Beginning.OVER:
        return None
    if answer is Beginning.BUSY:
        raise BatchBusy(batch_id, batch.holder, seconds)
    if known:
        transaction.change("renew_lease", **_named(known), lease=lease)
        return known
    token = FencingToken(batch.newest_token + 1)
    attempt = Attempt(attempt_id, batch_id, token, owner)
    transaction.change("make_attempt", **_named(attempt))
    transaction.change("hand_batch_over", batch_id=batch_id, token=token, owner=owner, lease=lease)
    return attempt


def renew_lease(transaction: Transaction, attempt: Attempt, lease: timedelta) -> None:
    """Hold the batch for another while; an attempt that has just committed needs none."""
    if not transaction.change("renew_lease", **_named(attempt), lease=lease):
        _raise_unless_committed(transaction, attempt)


def record_application(transaction: Transaction, attempt: Attempt, application_id: str) -> None:
    """Keep the Spark application's id."""
    changed = transaction.change(
        "record_application",
        batch_id=attempt.batch_id,
        attempt_id=attempt.attempt_id,
        token=attempt.token,
        application_id=application_id,
    )
    if not changed:
        raise fenced(transaction, attempt)


def record_failure(
    transaction: Transaction, attempt: Attempt, reason: str, *, blames_batch: bool
) -> None:
    """Keep why the attempt ended, and give the lease back if it is still this attempt's."""
    transaction.row("lock_batch", batch_id=attempt.batch_id)  # batches are locked before attempts
    transaction.change(
        "record_failure",
        attempt_id=attempt.attempt_id,
        token=attempt.token,
        reason=storable(reason),
        blames_batch=blames_batch,
    )
    transaction.change("give_lease_back", **_named(attempt))


def record_verified(transaction: Transaction, attempt: Attempt, manifest: Manifest) -> None:
    """Keep the manifest's very text: landing -> verified."""
    require_newest(transaction, attempt, locked_batch(transaction, attempt.batch_id))
    if manifest.attempt != attempt:
        raise LedgerRefused(
            "record_verification",
            f"the manifest is of attempt {manifest.attempt.attempt_id},"
            f" token {manifest.attempt.token}, not of {attempt.attempt_id}, token {attempt.token}",
        )
    text = manifest.to_json()
    parts = parted(text)
    recorded = transaction.one(
        "record_verification",
        batch_id=attempt.batch_id,
        attempt_id=attempt.attempt_id,
        isolation=manifest.isolation.value,
        manifest=compressed(parts.account),
        digest=sha256(parts.account.encode()).digest(),
        file_digest=sha256(text.encode()).digest(),
        hashes=compressed(json.dumps(parts.hashes)),
    )
    transaction.change(
        "mark_verified",
        batch_id=attempt.batch_id,
        token=attempt.token,
        verification_id=recorded.verification_id,
    )


def fenced(transaction: Transaction, attempt: Attempt) -> LedgerError:
    """Why this attempt may change nothing: a newer token, or a batch that is over."""
    batch = locked_batch(transaction, attempt.batch_id)
    known = read_attempt(transaction, attempt.attempt_id)
    if known is None or (known.batch_id, known.token) != (attempt.batch_id, attempt.token):
        return LedgerRefused(
            "attempt", f"attempt {attempt.attempt_id}, token {attempt.token}, is not in the ledger"
        )
    return AttemptFenced(attempt.batch_id, attempt.token, batch.newest_token)


def _raise_unless_committed(transaction: Transaction, attempt: Attempt) -> None:
    """A heartbeat that comes just after its own attempt's commit is no news."""
    if locked_batch(transaction, attempt.batch_id).committed_by != attempt.attempt_id:
        raise fenced(transaction, attempt)


def _named(attempt: Attempt) -> dict[str, object]:
    return {
        "batch_id": attempt.batch_id,
        "attempt_id": attempt.attempt_id,
        "token": attempt.token,
        "owner": attempt.owner,
    }
