"""What is asked of the ledger. Every promise here is proven by tests/contract/test_ledger.py."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Protocol

from tallystick.domain.attempts.last_copies import AtRisk, CommittedCopy, KeptFiles
from tallystick.domain.batches.batch import Attempt, BatchPlan, BatchStatus, WaitingBatch
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import AccountedRange, Manifest
from tallystick.domain.batches.states import BatchState, CommitAnswer
from tallystick.domain.deciding.plan import FrozenPlan
from tallystick.domain.identities import AttemptId, BatchId, FeedName, Owner
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.log_changes import Accounts, CutClaim, LogChanges
from tallystick.domain.rules.findings import Finding
from tallystick.domain.window import Window
from tallystick.ports.evidence import EvidenceRecord
from tallystick.ports.findings import FindingsRecord
from tallystick.ports.proofs import ProofsRecord
from tallystick.ports.reports import ReportsRecord
from tallystick.ports.scrubs import ScrubsRecord


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """A batch after its commit, with all that publishing needs."""

    manifest: Manifest
    manifest_text: str
    """The very text that was proven: the `_tally.json` that travels with the data."""
    attempt_id: AttemptId
    state: BatchState
    """COMMITTED or PUBLISHED."""

    @property
    def plan(self) -> BatchPlan:
        """What was landed."""
        return self.manifest.plan

    @property
    def manifest_sha256(self) -> bytes:
        """Of the text's bytes."""
        return sha256(self.manifest_text.encode()).digest()


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
class FileRecord:
    """One committed file, as `tallystick files` shows it."""

    batch_id: BatchId
    attempt_id: AttemptId
    plan: BatchPlan
    file: LandedFile
    is_published: bool


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of the changes that a plan asked for."""

    accounts: Accounts
    changes: LogChanges
    """Those that took effect: a claim that was committed meanwhile is not cut."""


class PlanningSession(Protocol):
    """The one transaction of a plan; the feed's planning lock is held until it ends."""

    def open_plan(self, window: Window | None) -> FrozenPlan | None:
        """The newest plan of this window while one of its batches can still be landed, else None.

        A run without a window never has one: it plans anew, after adopting what was left.
        """
        ...

    def first_planned_at(self, owner: Owner) -> datetime | None:
        """When this owner first froze a plan of the feed; None if it never did.

        All tries of a run are one owner: what an earlier one found, and died, is this run's news.
        """
        ...

    def accounts(self) -> Accounts:
        """Generations and unfinished batches of the feed, as of this transaction."""
        ...

    def apply(self, changes: LogChanges, snapshot: BrokerSnapshot | None) -> Applied:
        """Record the snapshot, then cuts, losses, what is due again, ended, opened generations.

        Without a snapshot the changes come from manifests, and no broker was asked.
        A batch that loses its last range is abandoned. Batches of a closed generation are abandoned
        whatever their lease says. A batch that was committed in the meantime loses nothing.
        """
        ...

    def record_findings(self, findings: Sequence[Finding]) -> None:
        """Keep findings with this very transaction, as `Ledger.record_findings` does."""
        ...

    def freeze(
        self,
        window: Window | None,
        batches: Sequence[BatchPlan],
        adopted: Sequence[BatchId],
        *,
        owner: Owner,
        lease: timedelta,
    ) -> FrozenPlan:
        """Claim the ranges and take over the adopted batches; raises ClaimConflict.

        Each batch has a window of its own, which ends no later than the run's `window`. New and
        adopted batches carry a lease for this owner, so no other run adopts them at once.
        """
        ...


class Ledger(EvidenceRecord, FindingsRecord, ProofsRecord, ReportsRecord, ScrubsRecord, Protocol):
    """The record of what was claimed, committed and lost.

    Every method raises LedgerUnavailable (retry), SchemaOutOfDate, or LedgerRefused. Leases are
    read by the database's clock, and nothing but adoption depends on them.
    """

    def planning(self, feed: FeedName, topic: str) -> AbstractContextManager[PlanningSession]:
        """One plan's transaction: committed when the block ends well, undone when it raises."""
        ...

    def accounts(self, feed: FeedName) -> Accounts:
        """The same as in planning, without the lock: for a dry run and for reconcile."""
        ...

    def open_plan(self, feed: FeedName, window: Window | None) -> FrozenPlan | None:
        """The same as in planning, without the lock: for a dry run."""
        ...

    def batch(self, batch_id: BatchId) -> BatchStatus:
        """The batch as it stands now; raises BatchUnknown."""
        ...

    def claimed_logs(self, batch_id: BatchId) -> Sequence[GenerationAccount]:
        """The generations of which the batch claims offsets, by partition; none once it is over."""
        ...

    def begin_attempt(
        self, batch_id: BatchId, *, attempt_id: AttemptId, owner: Owner, lease: timedelta
    ) -> Attempt | None:
        """A new attempt with the next token; every older token of the batch is dead from here on.

        None when the batch is over by now: committed, published or abandoned. Raises BatchBusy
        while another owner's lease runs; the same owner takes over at once (a retry of a task that
        was killed). Calling it again with the same attempt id gives the same attempt while it is
        the newest, else AttemptFenced.
        """
        ...

    def renew_lease(self, attempt: Attempt, lease: timedelta) -> None:
        """Hold the batch for another while; raises AttemptFenced."""
        ...

    def record_application(self, attempt: Attempt, application_id: str) -> None:
        """Keep the Spark application's id, before anybody waits for it; raises AttemptFenced."""
        ...

    def record_failure(self, attempt: Attempt, reason: str) -> None:
        """Keep why an attempt ended without a commit, give the lease back; never raises fenced."""
        ...

    def set_aside(
        self, attempt: Attempt, cuts: Sequence[CutClaim], findings: Sequence[Finding]
    ) -> None:
        """Cut the claims of the attempt's batch, and keep the findings that say why, at once.

        A batch without a claim is abandoned. Unreadable offsets whose finding two people have
        accepted already are lost. Raises AttemptFenced.
        """
        ...

    def record_verified(self, attempt: Attempt, manifest: Manifest) -> None:
        """Keep the proof, before the commit: landing -> verified; raises AttemptFenced.

        The manifest's text is kept with it, so what was verified is what is committed.
        """
        ...

    def commit(self, attempt: Attempt, kept: Collection[KeptFiles] = ()) -> CommitAnswer:
        """*The* commit: ranges, files, holes, anchors, frontiers of the verified manifest, at once.

        What a repair gives up with it is a finding, which names the `kept` files that may hold it.
        ALREADY_COMMITTED when this very attempt did it before. Raises AttemptFenced when its token
        is not the newest, CommitOutcomeUnknown when the connection died at COMMIT.
        """
        ...

    def outcome_of(self, attempt_id: AttemptId) -> CommitAnswer | None:
        """ALREADY_COMMITTED if this attempt committed its batch; None if it did not."""
        ...

    def committed_batch(self, batch_id: BatchId) -> CommittedBatch | None:
        """What publishing needs; None before the commit."""
        ...

    def unpublished(self, feed: FeedName) -> Sequence[CommittedBatch]:
        """Batches that are committed and not published, in the order of their commits."""
        ...

    def mark_published(self, batch_id: BatchId) -> None:
        """Committed -> published; a second call changes nothing."""
        ...

    def dead_attempts(self, feed: FeedName) -> Sequence[DeadAttempt]:
        """Attempts that can never commit any more, or have committed and are published, not yet
        swept.

        An attempt is dead when a newer one of its batch exists, or when its batch is committed by
        another attempt, published, or abandoned.
        """
        ...

    def mark_swept(self, attempt_id: AttemptId) -> None:
        """The attempt's staging directory is gone."""
        ...

    def batches_over(self, feed: FeedName, batch_ids: Collection[BatchId]) -> Sequence[BatchId]:
        """Those of the batches that are the feed's, and published or abandoned.

        That never changes again: nothing in their staging directories can be committed under their
        ids any more.
        """
        ...

    def offsets_at_risk(self, batch_ids: Collection[BatchId]) -> Mapping[BatchId, Sequence[AtRisk]]:
        """By batch, what it has claimed and no commit holds; a batch of which there is none is left
        out. What its attempts have in staging may be the only copy of these offsets.
        """
        ...

    def committed_copies(self, batch_id: BatchId) -> Sequence[CommittedCopy]:
        """The committed files, whosever they are, that hold offsets of this batch."""
        ...

    def committed_among(self, feed: FeedName, batch_ids: Collection[BatchId]) -> Sequence[BatchId]:
        """Those of the batches that are the feed's, and committed or published."""
        ...

    def roots(self, feed: FeedName) -> Sequence[str]:
        """Every root below which the feed has batches: it may have been moved."""
        ...

    def waiting(self, feed: FeedName) -> Sequence[WaitingBatch]:
        """The feed's unfinished batches that nobody holds, and those that are committed and not
        published; each with how long that has been so.
        """
        ...

    def lost(self, feed: FeedName) -> Sequence[tuple[GenerationAccount, OffsetRange, str]]:
        """Ranges recorded as lost, with generation and finding code, by partition and offset."""
        ...

    def batches(self, feed: FeedName) -> Sequence[BatchRecord]:
        """All batches of the feed, oldest first."""
        ...

    def files(self, feed: FeedName) -> Sequence[FileRecord]:
        """All committed files of the feed, in the order of commit, then by name."""
        ...

    def committed_manifests(self, feed: FeedName) -> Sequence[Manifest]:
        """The proofs on record, in the order of their commits."""
        ...

    def bytes_per_record(self, feed: FeedName) -> float | None:
        """Landed bytes per row over the feed's newest batches; None before the first."""
        ...

    def generations(self, feed: FeedName) -> Mapping[int, Sequence[GenerationAccount]]:
        """All generations by partition, oldest first."""
        ...

    def fold(self, feed: FeedName) -> int:
        """How many ranges now stand for several: contiguous, published, below their frontier.

        Offsets, counts and proofs stay as they are; the history only takes fewer rows.
        """
        ...

    def close(self) -> None:
        """Give the connection back; the ledger opens another one when it is used again."""
        ...
