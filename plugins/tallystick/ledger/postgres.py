"""The Ledger port on PostgreSQL: opens transactions, and hands each to the module that knows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta

from tallystick.domain.attempts.last_copies import AtRisk, CommittedCopy, KeptFiles
from tallystick.domain.batches.batch import Attempt, BatchStatus, WaitingBatch
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.states import CommitAnswer
from tallystick.domain.deciding.plan import FrozenPlan
from tallystick.domain.identities import AttemptId, BatchId, FeedName, Owner
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.feed_edits import FeedOnRecord
from tallystick.domain.planning.log_changes import Accounts, CutClaim
from tallystick.domain.rules.findings import Finding
from tallystick.domain.window import Window
from tallystick.errors import CommitOutcomeUnknown
from tallystick.ledger import attempts, commits, publishing, reading, setting_aside
from tallystick.ledger.connection import LedgerConnection
from tallystick.ledger.dsn import ledger_address
from tallystick.ledger.evidence_record import PostgresEvidence
from tallystick.ledger.findings_record import PostgresFindings
from tallystick.ledger.hole_rows import fold_holes
from tallystick.ledger.metric_rows import PostgresMetrics
from tallystick.ledger.news_rows import PostgresNews
from tallystick.ledger.overview_rows import PostgresOverview
from tallystick.ledger.planning_session import (
    PostgresPlanningSession,
    read_accounts,
    read_newest_plan,
    retire,
)
from tallystick.ledger.proofs_record import PostgresProofs
from tallystick.ledger.report_rows import PostgresReports
from tallystick.ledger.scrub_rows import PostgresScrubs
from tallystick.ledger.thinning import thin
from tallystick.ledger.waivers_record import PostgresWaivers
from tallystick.ports.attempts import DeadAttempt
from tallystick.ports.batches import BatchRecord, CommittedBatch, FileRecord
from tallystick.ports.planning import PlanningSession, Retirement


class PostgresLedger(
    PostgresEvidence,
    PostgresFindings,
    PostgresMetrics,
    PostgresNews,
    PostgresOverview,
    PostgresProofs,
    PostgresReports,
    PostgresScrubs,
    PostgresWaivers,
):
    """Fulfils `Ledger`; see there for every promise. One connection, opened when first used.

    With `patience` nothing waits longer for the server, neither to connect nor for a statement.
    """

    def __init__(self, dsn: str, patience: timedelta | None = None) -> None:
        self._connection = LedgerConnection(ledger_address(dsn, patience), patience=patience)

    def __repr__(self) -> str:
        return f"PostgresLedger({self._connection})"

    @contextmanager
    def planning(self, feed: FeedName, topic: str) -> Iterator[PlanningSession]:
        """One plan's transaction."""
        with self._connection.writing() as transaction:
            yield PostgresPlanningSession.entered(transaction, feed, topic)

    def accounts(self, feed: FeedName) -> Accounts:
        """The same as in planning, without the lock."""
        with self._connection.reading() as transaction:
            return read_accounts(transaction, feed)

    def newest_plan(self, feed: FeedName, window: Window | None) -> FrozenPlan | None:
        """The same as in planning, without the lock."""
        with self._connection.reading() as transaction:
            return read_newest_plan(transaction, feed, window)

    def retire(self, feed: FeedName, *, reason: str, by: str) -> Retirement:
        """End a feed."""
        with self._connection.writing() as transaction:
            return retire(transaction, feed, reason, by)

    def batch(self, batch_id: BatchId) -> BatchStatus:
        """The batch as it stands now."""
        with self._connection.reading() as transaction:
            return reading.batch(transaction, batch_id)

    def claimed_logs(self, batch_id: BatchId) -> Sequence[GenerationAccount]:
        """The generations of which the batch claims offsets, by partition; none once it is over."""
        with self._connection.reading() as transaction:
            return reading.claimed_logs(transaction, batch_id)

    def attempt(self, attempt_id: AttemptId) -> Attempt | None:
        """The attempt as it was begun."""
        with self._connection.reading() as transaction:
            return attempts.read_attempt(transaction, attempt_id)

    def unheard_seconds(self, attempt_id: AttemptId) -> float | None:
        """Since the attempt was last heard of, by the ledger's clock."""
        with self._connection.reading() as transaction:
            return attempts.unheard_seconds(transaction, attempt_id)

    def begin_attempt(
        self, batch_id: BatchId, *, attempt_id: AttemptId, owner: Owner, lease: timedelta
    ) -> Attempt | None:
        """A new attempt with the next token; None when the batch is over."""
        with self._connection.writing() as transaction:
            return attempts.begin_attempt(
                transaction, batch_id, attempt_id=attempt_id, owner=owner, lease=lease
            )

    def renew_lease(self, attempt: Attempt, lease: timedelta) -> None:
        """Hold the batch for another while."""
        with self._connection.writing() as transaction:
            attempts.renew_lease(transaction, attempt, lease)

    def record_application(self, attempt: Attempt, application_id: str) -> None:
        """Keep the Spark application's id."""
        with self._connection.writing() as transaction:
            attempts.record_application(transaction, attempt, application_id)

    def record_failure(self, attempt: Attempt, reason: str, *, blames_batch: bool = True) -> None:
        """Keep why an attempt ended without a commit."""
        with self._connection.writing() as transaction:
            attempts.record_failure(transaction, attempt, reason, blames_batch=blames_batch)

    def set_aside(
        self, attempt: Attempt, cuts: Sequence[CutClaim], findings: Sequence[Finding]
    ) -> None:
        """Cut the claims of the attempt's batch."""
        with self._connection.writing() as transaction:
            setting_aside.set_aside(transaction, attempt, cuts, findings)

    def record_verified(self, attempt: Attempt, manifest: Manifest) -> None:
        """Keep the proof, before the commit."""
        with self._connection.writing() as transaction:
            attempts.record_verified(transaction, attempt, manifest)

    def commit(self, attempt: Attempt, kept: Collection[KeptFiles] = ()) -> CommitAnswer:
        """*The* commit."""

        def unknown(reason: str) -> CommitOutcomeUnknown:
            return CommitOutcomeUnknown(attempt.batch_id, attempt.attempt_id, reason)

        with self._connection.writing(lost_commit=unknown) as transaction:
            return commits.commit(transaction, attempt, kept)

    def outcome_of(self, attempt_id: AttemptId) -> CommitAnswer | None:
        """ALREADY_COMMITTED if this attempt committed its batch."""
        with self._connection.writing() as transaction:
            return commits.outcome_of(transaction, attempt_id)

    def committed_batch(self, batch_id: BatchId) -> CommittedBatch | None:
        """What publishing needs."""
        with self._connection.reading() as transaction:
            return publishing.committed_batch(transaction, batch_id)

    def unpublished(self, feed: FeedName) -> Sequence[CommittedBatch]:
        """Batches that are committed and not published."""
        with self._connection.reading() as transaction:
            return publishing.unpublished(transaction, feed)

    def mark_published(self, batch_id: BatchId, owner: Owner | None = None) -> None:
        """The batch is shown to readers."""
        with self._connection.writing() as transaction:
            publishing.mark_published(transaction, batch_id, owner)

    def record_move(
        self, batch_ids: Collection[BatchId], from_root: str, to_root: str, by: Owner
    ) -> None:
        """Published batches lie below another root by now."""
        with self._connection.writing() as transaction:
            publishing.record_move(transaction, batch_ids, from_root, to_root, by)

    def published_by(self, feed: FeedName, owner: Owner) -> Sequence[BatchId]:
        """What this owner has published."""
        with self._connection.reading() as transaction:
            return publishing.published_by(transaction, feed, owner)

    def dead_attempts(self, feed: FeedName) -> Sequence[DeadAttempt]:
        """Attempts whose staging directories may be swept."""
        with self._connection.reading() as transaction:
            return publishing.dead_attempts(transaction, feed)

    def mark_swept(self, attempt_id: AttemptId) -> None:
        """The attempt's staging directory is gone."""
        with self._connection.writing() as transaction:
            publishing.mark_swept(transaction, attempt_id)

    def batches_over(self, feed: FeedName, batch_ids: Collection[BatchId]) -> Sequence[BatchId]:
        """Those of the batches whose staging nobody needs any more."""
        with self._connection.reading() as transaction:
            return publishing.batches_over(transaction, feed, batch_ids)

    def offsets_at_risk(self, batch_ids: Collection[BatchId]) -> Mapping[BatchId, Sequence[AtRisk]]:
        """What these batches have claimed and no commit holds."""
        with self._connection.reading() as transaction:
            return publishing.offsets_at_risk(transaction, batch_ids)

    def committed_copies(self, batch_id: BatchId) -> Sequence[CommittedCopy]:
        """Committed files with offsets of this batch."""
        with self._connection.reading() as transaction:
            return publishing.committed_copies(transaction, batch_id)

    def committed_among(self, feed: FeedName, batch_ids: Collection[BatchId]) -> Sequence[BatchId]:
        """Those of the batches that this ledger has committed."""
        with self._connection.reading() as transaction:
            return publishing.committed_among(transaction, feed, batch_ids)

    def roots(self, feed: FeedName, *, with_former: bool = False) -> Sequence[str]:
        """Every root below which the feed has batches."""
        with self._connection.reading() as transaction:
            return publishing.roots(transaction, feed, with_former=with_former)

    def on_record(self, feed: FeedName, topic: str) -> FeedOnRecord:
        """What the feed's file is compared with."""
        with self._connection.reading() as transaction:
            return reading.on_record(transaction, feed, topic)

    def waiting(self, feed: FeedName) -> Sequence[WaitingBatch]:
        """Batches that wait for somebody."""
        with self._connection.reading() as transaction:
            return reading.waiting(transaction, feed)

    def lost(self, feed: FeedName) -> Sequence[tuple[GenerationAccount, OffsetRange, str]]:
        """Ranges recorded as lost."""
        with self._connection.reading() as transaction:
            return reading.lost(transaction, feed)

    def batches(self, feed: FeedName) -> Sequence[BatchRecord]:
        """All batches of the feed."""
        with self._connection.reading() as transaction:
            return reading.batches(transaction, feed)

    def files(self, feed: FeedName) -> Sequence[FileRecord]:
        """All committed files of the feed."""
        with self._connection.reading() as transaction:
            return reading.files(transaction, feed)

    def committed_manifests(self, feed: FeedName) -> Sequence[Manifest]:
        """The proofs on record."""
        with self._connection.reading() as transaction:
            return reading.committed_manifests(transaction, feed)

    def bytes_per_record(self, feed: FeedName) -> float | None:
        """Landed bytes per row."""
        with self._connection.reading() as transaction:
            return reading.bytes_per_record(transaction, feed)

    def generations(self, feed: FeedName) -> Mapping[int, Sequence[GenerationAccount]]:
        """All generations by partition."""
        with self._connection.reading() as transaction:
            return reading.generations(transaction, feed)

    def fold(self, feed: FeedName) -> int:
        """How many ranges now stand for several: contiguous, published, below their frontier.

        Offsets, counts and proofs stay as they are; the history only takes fewer rows. Then a part
        of the holes of old batches is folded, too, and what may be forgotten by now is.
        """
        with self._connection.writing() as transaction:
            transaction.rows("lock_generations_of", feed=feed)
            folded = transaction.change("fold_ranges", feed=feed)
        with self._connection.writing() as transaction:
            transaction.rows("lock_generations_of", feed=feed)
            fold_holes(transaction, feed)
            thin(transaction, feed)
        return folded

    def close(self) -> None:
        """Give the connection back; the next use opens another."""
        self._connection.close()
