"""What is asked of the ledger by attempts at a batch, up to the commit, and by who clears up after
them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from tallystick.domain.attempts.last_copies import AtRisk, CommittedCopy, KeptFiles
from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.states import CommitAnswer
from tallystick.domain.identities import AttemptId, BatchId, FeedName, Owner
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.planning.log_changes import CutClaim
from tallystick.domain.rules.findings import Finding


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


class AttemptsRecord(Protocol):
    """Attempts: begun, held, proven, committed or failed, and swept."""

    def claimed_logs(self, batch_id: BatchId) -> Sequence[GenerationAccount]:
        """The generations of which the batch claims offsets, by partition; none once it is over."""
        ...

    def attempt(self, attempt_id: AttemptId) -> Attempt | None:
        """The attempt as it was begun; None for one that this ledger never saw."""
        ...

    def unheard_seconds(self, attempt_id: AttemptId) -> float | None:
        """By the ledger's clock, since the attempt was last heard of: since its end, since a newer
        one of its batch began, or since its lease ran out; negative while the lease runs.

        None for one that this ledger never saw.
        """
        ...

    def begin_attempt(
        self, batch_id: BatchId, *, attempt_id: AttemptId, owner: Owner, lease: timedelta
    ) -> Attempt | None:
        """A new attempt with the next token; every older token of the batch is dead from here on.

        `domain.batches.taking` says what becomes of it. None when the batch is over by now:
        committed, published or abandoned. Raises BatchBusy while another owner's lease runs; the
        same owner takes over at once (a retry of a task that was killed). Calling it again with
        the same attempt id gives the same attempt while it is the newest, else AttemptFenced.
        """
        ...

    def renew_lease(self, attempt: Attempt, lease: timedelta) -> None:
        """Hold the batch for another while; raises AttemptFenced."""
        ...

    def record_application(self, attempt: Attempt, application_id: str) -> None:
        """Keep the Spark application's id, once it reads records; raises AttemptFenced."""
        ...

    def record_failure(self, attempt: Attempt, reason: str, *, blames_batch: bool = True) -> None:
        """Keep why an attempt ended without a commit, give the lease back; never raises fenced.

        Where the batch is not to blame its application is forgotten: it counts as none.
        """
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

    def offsets_at_risk(self, batch_ids: Collection[BatchId]) -> Mapping[BatchId, Sequence[AtRisk]]:
        """By batch, what it has claimed and no commit holds; a batch of which there is none is left
        out. What its attempts have in staging may be the only copy of these offsets.
        """
        ...

    def committed_copies(self, batch_id: BatchId) -> Sequence[CommittedCopy]:
        """The committed files, whosever they are, that hold offsets of this batch."""
        ...
