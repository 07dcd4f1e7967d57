"""What follows the commit: what is to be shown, what was shown, what may be swept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tallystick.domain.attempts.last_copies import AtRisk, CommittedCopy
from tallystick.domain.batches.batch import Attempt, BatchPlan
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import StagingPath
from tallystick.domain.batches.states import BatchState, RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import AttemptId, BatchId, FeedName, Owner
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.rules.registry import codes_with
from tallystick.domain.rules.rule import Trait
from tallystick.errors import BatchUnknown, LedgerRefused
from tallystick.ledger.connection import Tables
from tallystick.ledger.rows import (
    account_text,
    as_stored_now,
    attempt_in,
    batch_path_in,
    batch_rows,
    manifest_in,
    manifest_text,
    offsets_in,
)


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """A batch after its commit, with all that publishing needs."""

    manifest: Manifest
    manifest_text: str | None
    """The very text that was proven: the `_tally.json` that travels with the data. None for an old
    batch: the text is the manifest's own, once it has the hashes of its last rows again."""
    manifest_sha256: bytes
    """Of the text's bytes."""
    account: str
    """The text without the hashes of last records, which the chain of commits binds. It is the
    manifest of an old batch whose last rows a repair has landed again."""
    attempt_id: AttemptId
    state: BatchState
    """COMMITTED or PUBLISHED."""
    replaced: frozenset[str]
    """Its files whose place a repair has taken, for their rows had vanished."""

    @property
    def plan(self) -> BatchPlan:
        """What was landed."""
        return self.manifest.plan


@dataclass(frozen=True, slots=True)
class DeadAttempt:
    """An attempt whose token is dead, and whose staging directory has not been swept."""

    attempt: Attempt
    root: str
    """Of its batch: below it lies the staging directory."""
    has_committed: bool
    """True: its data directory belongs to the ledger, and only left-overs may go."""
    is_over: bool
    """True when the batch is published or abandoned: nothing of it is landed any more."""


class Publishing(Tables):
    """Batches after their commit, and the staging directories of attempts that are over."""

    def committed_batch(self, batch_id: BatchId) -> CommittedBatch | None:
        """What publishing needs; None before the commit."""
        return next(iter(self._committed(batch_id=batch_id)), None)

    def unpublished(self, feed: FeedName) -> Sequence[CommittedBatch]:
        """Batches that are committed and not published, in the order of their commits."""
        return self._committed(feed=feed)

    def _committed(
        self, *, feed: FeedName | None = None, batch_id: BatchId | None = None
    ) -> list[CommittedBatch]:
        rows = self._connection.rows("committed_batches", feed=feed, batch_id=batch_id)
        return [_committed(row) for row in rows]

    def mark_published(self, batch_id: BatchId, owner: Owner | None = None) -> None:
        """Committed -> published, by this run, and N3 of it ends; a second call changes nothing."""
        with self._connection.writing() as transaction:
            if transaction.change("mark_published", batch_id=batch_id, owner=owner):
                code = FindingCode.UNFINISHED_BATCH.value
                transaction.change("end_not_shown", batch_id=batch_id, code=code)
                return
            batches = batch_rows(transaction, batch_id=batch_id)
        if not batches:
            raise BatchUnknown(batch_id)
        [batch] = batches
        if batch.state != BatchState.PUBLISHED.value:
            reason = f"batch {batch_id} is {batch.state}, not committed"
            raise LedgerRefused("mark_published", reason)

    def published_by(self, feed: FeedName, owner: Owner) -> Sequence[BatchId]:
        """The feed's batches that this owner has published, in all its tries."""
        rows = self._connection.rows("published_by", feed=feed, owner=owner)
        return [BatchId(row.batch_id) for row in rows]

    def batches_over(self, feed: FeedName, batch_ids: Collection[BatchId]) -> Sequence[BatchId]:
        """Those of the batches that are the feed's, and published or abandoned.

        That never changes again: nothing in their staging directories can be committed under their
        ids any more.
        """
        return self._among(feed, batch_ids, BatchState.PUBLISHED, BatchState.ABANDONED)

    def committed_among(self, feed: FeedName, batch_ids: Collection[BatchId]) -> Sequence[BatchId]:
        """Those of the batches that are the feed's, and committed or published."""
        return self._among(feed, batch_ids, BatchState.COMMITTED, BatchState.PUBLISHED)

    def _among(
        self, feed: FeedName, batch_ids: Collection[BatchId], *states: BatchState
    ) -> list[BatchId]:
        wanted = {"batch_ids": list(batch_ids), "states": [each.value for each in states]}
        rows = self._connection.rows("batches_among", feed=feed, **wanted)
        return [BatchId(row.batch_id) for row in rows]

    def roots(self, feed: FeedName, *, with_former: bool = False) -> Sequence[str]:
        """Every root below which the feed has batches: it may have been moved.

        With the former ones, from which whole batches were moved: dead attempts lie there still.
        """
        rows = self._connection.rows("roots", feed=feed, with_former=with_former)
        return [row.root for row in rows]

    def record_move(
        self, batch_ids: Collection[BatchId], from_root: str, to_root: str, by: Owner
    ) -> None:
        """Published batches lie below another root by now; their manifests keep the former one.

        One that does not lie below `from_root` stays as it is.
        """
        moved = {"batch_ids": list(batch_ids), "from_root": from_root, "to_root": to_root}
        with self._connection.writing() as transaction:
            transaction.change("enter_move", **moved, owner=by)
            transaction.change("move_batches", **moved)

    def dead_attempts(self, feed: FeedName) -> Sequence[DeadAttempt]:
        """Attempts that can never commit any more, or have committed and are published, not yet
        swept.

        An attempt is dead when a newer one of its batch exists, or when its batch is committed by
        another attempt, published, or abandoned.
        """
        return [
            DeadAttempt(attempt_in(row), row.root, row.has_committed, row.is_over)
            for row in self._connection.rows("dead_attempts", feed=feed)
        ]

    def mark_swept(self, attempt_id: AttemptId) -> None:
        """The attempt's staging directory is gone."""
        self._connection.change("mark_swept", attempt_id=attempt_id)

    def offsets_at_risk(self, batch_ids: Collection[BatchId]) -> Mapping[BatchId, Sequence[AtRisk]]:
        """By batch, what it has claimed and no commit holds; a batch of which there is none is left
        out. What its attempts have in staging may be the only copy of these offsets.
        """
        found: dict[BatchId, list[AtRisk]] = {}
        rows = self._connection.rows(
            "offsets_at_risk",
            batch_ids=list(batch_ids),
            doubting_rows=codes_with(Trait.DOUBTS_ROWS),
            doubting_a_file=codes_with(Trait.DOUBTS_FILE),
            given_up=FindingCode.COMMITTED_FILE_MISSING.value,
        )
        for row in rows:
            risk = AtRisk(
                offsets_in(row),
                RangeState(row.state),
                GenerationState(row.log_state),
                row.cluster_id,
                row.topic_id,
                row.replaces,
            )
            found.setdefault(BatchId(row.batch_id), []).append(risk)
        return found

    def committed_copies(self, batch_id: BatchId) -> Sequence[CommittedCopy]:
        """The committed files, whosever they are, that hold offsets of this batch."""
        return [
            CommittedCopy(
                _directory(row),
                row.name,
                row.length_bytes,
                row.checksum,
                offsets_in(row),
            )
            for row in self._connection.rows("committed_copies", batch_id=batch_id)
        ]


def _directory(row: Any) -> str:
    if row.state == BatchState.PUBLISHED.value:
        return str(batch_path_in(row))
    return StagingPath(row.root, BatchId(row.batch_id), AttemptId(row.committed_by)).data


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
        replaced=frozenset(row.replaced),
    )
