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
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.rows import attempt_in
from tallystick.ledger.texts import compressed, storable


class Attempts(Tables):
    """Attempts up to their commit: begun, held, proven or failed."""

    def attempt(self, attempt_id: AttemptId) -> Attempt | None:
        """The attempt as it was begun; None for one that this ledger never saw."""
        with self._connection.reading() as transaction:
            return _attempt(transaction, attempt_id)

    def unheard_seconds(self, attempt_id: AttemptId) -> float | None:
        """By the ledger's clock, since the attempt was last heard of: since its end, since a newer
        one of its batch began, or since its lease ran out; negative while the lease runs.

        None for one that this ledger never saw.
        """
        row = self._connection.row("unheard_seconds", attempt_id=attempt_id)
        return None if row is None else float(row.seconds)

    def begin_attempt(
        self, batch_id: BatchId, *, attempt_id: AttemptId, owner: Owner, lease: timedelta
    ) -> Attempt | None:
        """A new attempt with the next token; every older token of the batch is dead from here on.

        `domain.batches.taking` says what becomes of it. None when the batch is over by now:
        committed, published or abandoned. Raises BatchBusy while another owner's lease runs; the
        same owner takes over at once (a retry of a task that was killed). Calling it again with
        the same attempt id gives the same attempt while it is the newest, else AttemptFenced.
        """
        with self._connection.writing() as transaction:
            batch = locked_batch(transaction, batch_id)
            known = _attempt(transaction, attempt_id)
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
            transaction.change(
                "hand_batch_over", batch_id=batch_id, token=token, owner=owner, lease=lease
            )
            return attempt

    def renew_lease(self, attempt: Attempt, lease: timedelta) -> None:
        """Hold the batch for another while; raises AttemptFenced.

        A heartbeat that comes just after its own attempt's commit is no news.
        """
        with self._connection.writing() as transaction:
            renew(transaction, attempt, lease)

    def record_application(self, attempt: Attempt, application_id: str) -> None:
        """Keep the Spark application's id, once it reads records; raises AttemptFenced."""
        with self._connection.writing() as transaction:
            if not transaction.change(
                "record_application",
                batch_id=attempt.batch_id,
                attempt_id=attempt.attempt_id,
                token=attempt.token,
                application_id=application_id,
            ):
                raise fenced(transaction, attempt)

    def record_failure(self, attempt: Attempt, reason: str, *, blames_batch: bool = True) -> None:
        """Keep why an attempt ended without a commit, and give the lease back if it is still this
        attempt's; never raises fenced.

        Where the batch is not to blame its application is forgotten: it counts as none.
        """
        with self._connection.writing() as transaction:
            # Batches are locked before attempts.
            transaction.row("lock_batch", batch_id=attempt.batch_id)
            transaction.change(
                "record_failure",
                attempt_id=attempt.attempt_id,
                token=attempt.token,
                reason=storable(reason),
                blames_batch=blames_batch,
            )
            transaction.change("give_lease_back", **_named(attempt))

    def record_verified(self, attempt: Attempt, manifest: Manifest) -> None:
        """Keep the proof, before the commit: landing -> verified; raises AttemptFenced.

        The manifest's text is kept with it, so what was verified is what is committed.
        """
        if manifest.attempt != attempt:
            raise LedgerRefused(
                "record_verification",
                f"the manifest is of attempt {manifest.attempt.attempt_id},"
                f" token {manifest.attempt.token}, not of {attempt.attempt_id},"
                f" token {attempt.token}",
            )
        text = manifest.to_json()
        parts = parted(text)
        with self._connection.writing() as transaction:
            require_newest(transaction, attempt, locked_batch(transaction, attempt.batch_id))
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


def locked_batch(transaction: Transaction, batch_id: BatchId) -> Any:
    """The batch's row, locked until the transaction ends; raises BatchUnknown."""
    row = transaction.row("lock_batch", batch_id=batch_id)
    if row is None:
        raise BatchUnknown(batch_id)
    return row


def require_newest(transaction: Transaction, attempt: Attempt, batch: Any) -> None:
    """Raise what `fenced` says unless the attempt may still commit the batch, whose row is locked:
    its token is the newest, and the batch is unfinished.
    """
    if batch.newest_token != attempt.token or not BatchState(batch.state).is_unfinished:
        raise fenced(transaction, attempt)


def renew(transaction: Transaction, attempt: Attempt, lease: timedelta) -> None:
    """Hold the batch for another while; raises what `fenced` says, unless it has committed it."""
    if transaction.change("renew_lease", **_named(attempt), lease=lease):
        return
    if locked_batch(transaction, attempt.batch_id).committed_by != attempt.attempt_id:
        raise fenced(transaction, attempt)


def fenced(transaction: Transaction, attempt: Attempt) -> LedgerError:
    """Why this attempt may change nothing: a newer token, or a batch that is over."""
    batch = locked_batch(transaction, attempt.batch_id)
    known = _attempt(transaction, attempt.attempt_id)
    if known is None or (known.batch_id, known.token) != (attempt.batch_id, attempt.token):
        return LedgerRefused(
            "attempt", f"attempt {attempt.attempt_id}, token {attempt.token}, is not in the ledger"
        )
    return AttemptFenced(attempt.batch_id, attempt.token, batch.newest_token)


def _attempt(transaction: Transaction, attempt_id: AttemptId) -> Attempt | None:
    row = transaction.row("attempt", attempt_id=attempt_id)
    return attempt_in(row) if row is not None else None


def _named(attempt: Attempt) -> dict[str, object]:
    return {
        "batch_id": attempt.batch_id,
        "attempt_id": attempt.attempt_id,
        "token": attempt.token,
        "owner": attempt.owner,
    }
