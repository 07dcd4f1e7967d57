"""Settles what attempts hold of what would be lost: proves and commits it, or gives it up.

A run calls it as a step of its own, before it plans. What holds nothing up is left alone, and so is
what can't be asked: its claims stand, and its finding says how a person gives it up.

1. What is committed goes by the rules of any batch: the newest token commits.
2. What was asked as it lies there, and proves nothing, is given up: it is moved to quarantine under
   a new token, so that no attempt of before can commit it any more. Then the next plan says what is
   lost.
3. Whoever is killed on the way is followed by the next one, which finds the files where they are.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tallystick.domain.batches.batch import Attempt, BatchPlan, BatchStatus
from tallystick.domain.batches.paths import STAGING_NAME, StagingPath
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import AttemptId, BatchId, Owner
from tallystick.domain.planning.pending_losses import PendingLosses, pending_losses
from tallystick.domain.rules.log_findings import change_findings
from tallystick.errors import (
    CommitOutcomeUnknown,
    FileMissing,
    IngestionError,
    LedgerBehind,
    LedgerUnavailable,
    ManifestMismatch,
    SourceChanged,
    SourceError,
    StorageError,
    VerificationFailed,
)
from tallystick.workflows.committing.failing import failing
from tallystick.workflows.committing.retiring import quarantine_directory
from tallystick.workflows.committing.taking_over import commit_proven, take_over
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.place import at
from tallystick.workflows.planning.comparing_file import told_edits
from tallystick.workflows.planning.looking import Looking, under_lock
from tallystick.workflows.services import Services
from tallystick.workflows.settling.claiming_again import (
    ClaimedAgain,
    FreeFiles,
    claimed_again,
    free_files,
    is_provable,
)
from tallystick.workflows.settling.offers import Offer, offers_of
from tallystick.workflows.stored.asking_attempts import AskedAttempts
from tallystick.workflows.stored.other_feeds import require_root_outside
from tallystick.workflows.stored.published_batches import feed_roots
from tallystick.workflows.stored.staged_attempts import (
    batches_in_staging,
    known_batch,
    quarantined_at,
)
from tallystick.workflows.stored.staged_batches import staged_batches
from tallystick.workflows.stored.staging import kept_by_others, staged_files

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of it."""

    committed: Sequence[BatchPlan] = ()
    """The run publishes them."""
    given_up: Collection[str] = ()
    """The directories that are in quarantine now."""
    stuck: Collection[str] = ()
    """Those that no run can settle: they can't be read, or their batch is none of this ledger."""


def settle_if_heard(services: Services, owner: Owner) -> Settled:
    """Settle as `settle_attempts` does; what storage or broker don't answer is left to the plan."""
    try:
        return settle_attempts(services, owner)
    except (StorageError, SourceError) as error:
        log.warning("What attempts hold can't be settled now: %s", error)
        return Settled()


def settle_attempts(services: Services, owner: Owner) -> Settled:
    """Commit what attempts hold of what would be lost, and give up what was asked in vain.

    Raises LedgerBehind when the storage holds batches that this ledger has never heard of: nothing
    is lost then. ConfigurationError for a file of another feed; LedgerUnavailable; StorageError and
    SourceError before anything is changed.
    """
    with at(services, "settle"):
        if not any(batches_in_staging(services, each) for each in feed_roots(services)):
            return Settled()
        told_edits(services, "plan")
        require_root_outside(services)
        if not services.ledger.accounts(services.feed_name).generations:
            return Settled()
        pending = under_lock(services, _pending)
        if not (pending.batches or pending.lost):
            return Settled()
    settling = _Settling(services, pending, owner)
    settling.require_none_forgotten()
    settling.commit_what_is_proven()
    settling.give_up_the_rest()
    return settling.done()


def _pending(looking: Looking) -> PendingLosses:
    """What this look would end; the plan that follows looks again, and records it."""
    looking.record_alone()
    pending = pending_losses(looking.accounts, looking.seen, looking.services.isolation)
    if looking.behind and (pending.batches or pending.lost):
        raise looking.behind
    return pending


def give_up(services: Services, path: str, place: str, owner: Owner) -> bool:
    """Move a directory of attempts in staging to quarantine; False where it is gone, or committed.

    Under a new token, so that nobody commits it any more; the lease is given back at once. Raises
    BatchBusy while another attempt of the batch lives.
    """
    within = path.partition(f"/{STAGING_NAME}/")[2].partition("/")
    batch_id, attempt_id = BatchId(within[0]), AttemptId(within[2])
    status = known_batch(services, batch_id)
    begun: Attempt | None = None
    if status and status.state.is_unfinished:
        begun = services.ledger.begin_attempt(
            batch_id, attempt_id=AttemptId(services.new_id()), owner=owner, lease=services.lease
        )
        status = known_batch(services, batch_id)
    may_be_shown = status and attempt_id in ("", status.committed_by)
    if status and may_be_shown and status.state is BatchState.COMMITTED:
        return False
    try:
        is_moved = quarantine_directory(services, path, place) is not None
    finally:
        if begun:
            reason = f"It was to give up what {path} holds, and landed nothing."
            services.ledger.record_failure(begun, reason, blames_batch=False)
    if is_moved:
        log.warning("What %s holds is given up: it is kept in %s.", path, place)
    return is_moved


@dataclass(slots=True)
class _Settling:
    """One pass over what is there, about one look at the log."""

    services: Services
    pending: PendingLosses
    owner: Owner
    committed: list[BatchPlan] = field(default_factory=list)
    _asked: AskedAttempts = field(init=False)
    _left: set[BatchId] = field(default_factory=set)
    """Batches whose files wait: for another run, for an answer, or for what others may hold."""
    _good: set[str] = field(default_factory=set)
    """The directories of which something can be committed, and is not yet."""
    _given_up: set[str] = field(default_factory=set)
    _unknown: set[str] = field(default_factory=set)
    """Those of batches that this ledger has never heard of."""

    def __post_init__(self) -> None:
        self._asked = AskedAttempts(self.services, ends_orphans=True)

    def require_none_forgotten(self) -> None:
        """Raise LedgerBehind for proven batches that this ledger has never heard of: it was
        restored, and a rebuild may enter them.
        """
        lost = [each.offsets for each in self.pending.changes.lost]
        if not lost:
            return
        services = self.services
        topic_ids = {each.topic_id for each in self.pending.accounts.generations.values()}
        forgotten = [
            each.directory
            for each in staged_batches(services, feed_roots(services), AskedAttempts(services))
            if each.plan.topic_id in topic_ids
            and any(
                planned.offsets.intersection(offsets)
                for planned in each.plan.ranges
                for offsets in lost
            )
        ]
        if forgotten:
            raise LedgerBehind(services.feed_name, forgotten)

    def commit_what_is_proven(self) -> None:
        """Commit what attempts hold of what would be lost, whatever batch they are of."""
        for batch in self.pending.batches:
            with self._asking(batch.plan):
                root, batch_id = batch.plan.root, batch.plan.batch_id
                self._commit_of(batch, self._asked.attempts_of(root, batch_id))
        for free in list(self._provable_files()):
            again: ClaimedAgain | None = None
            with self._asking(free.plan), self._asked.noting(free.staging):
                again = claimed_again(self.services, free, self._standing(), self.owner)
            if again:
                with self._asking(again.status.plan):
                    self._commit_of(again.status, [again.staging])

    def give_up_the_rest(self) -> None:
        """Give up what was asked, proves nothing, and holds up what the log has lost."""
        services, there = self.services, list(staged_files(self.services, self._asked))
        accounts = services.ledger.accounts(services.feed_name)
        now = pending_losses(accounts, self.pending.seen, services.isolation)
        for each in there:
            path, batch_id = str(each.staging), each.staging.batch_id
            if each.status is None:
                self._unknown.add(path)
                continue
            if path not in self._asked.answered or each.status.is_held or self._waits(batch_id):
                continue
            place = quarantined_at(services, each.staging)
            files = each.files_at(place)
            # What only the second look calls lost, nobody was asked for.
            if all(look.are_held_up_by(batch_id, files) for look in (self.pending, now)):
                with self._asking(each.status.plan), self._asked.noting(each.staging):
                    if give_up(services, path, place, self.owner):
                        self._given_up.add(path)

    def done(self) -> Settled:
        """What has come of it so far."""
        stuck = {*self._asked.notes, *self._unknown} - self._good
        return Settled(self.committed, self._given_up, stuck)

    def _waits(self, batch_id: BatchId) -> bool:
        return batch_id in self._left or self._asked.is_about(batch_id)

    def _commit_of(self, batch: BatchStatus, attempts: Sequence[StagingPath]) -> None:
        """Commit the first offer of the batch that can be."""
        seen = self.pending.seen
        for offer in offers_of(self.services, batch.plan, attempts, seen.snapshot, self._asked):
            self._good.add(str(offer.staging))
            if not self._takes_from_nobody(batch.plan, offer):
                self._left.add(batch.plan.batch_id)
                continue
            with self._asked.noting(offer.staging):
                is_committed = self._is_committed(batch.plan, offer)
                self._good.discard(str(offer.staging))
                if is_committed:
                    self.committed.append(self.services.ledger.batch(batch.plan.batch_id).plan)
                    return

    def _is_committed(self, plan: BatchPlan, offer: Offer) -> bool:
        """False where the batch is over, and where the files prove too little."""
        services = self.services
        try:
            attempt = take_over(services, plan, offer.staging.attempt_id, self.owner)
            if attempt is None:
                return False
            self._asked.answered.add(str(StagingPath.of(plan, attempt.attempt_id)))
            if offer.manifest:
                commit_proven(services, attempt, offer.manifest)
            else:
                with failing(services, attempt):
                    self._give_up_ends(plan, attempt, offer)
                verify_and_commit(services, attempt)
        except (VerificationFailed, ManifestMismatch, FileMissing, SourceChanged) as error:
            log.warning("%s", error)
            return False
        log.warning(
            "Batch %s: what %s holds can't be read again, and is committed.",
            plan.batch_id,
            offer.staging,
        )
        return True

    def _give_up_ends(self, plan: BatchPlan, attempt: Attempt, offer: Offer) -> None:
        """The ends of claims that nobody can prove are lost; the token keeps others away."""
        services, pending = self.services, self.pending
        if not offer.lost:
            return
        kept = kept_by_others(services, plan, attempt.attempt_id, offer.lost)
        wanted = pending.given_up(plan, offer.parts, kept)
        with services.ledger.planning(services.feed_name, services.topic) as session:
            if session.apply(wanted, None) is None:
                return
            known = pending.accounts.generations
            found = change_findings(services.feed_name, known, wanted, pending.seen)
            session.record_findings(found)
            # A plan of its own, for what is found here is this run's news, whatever follows.
            session.freeze(None, (), (), owner=self.owner, lease=services.lease)

    def _takes_from_nobody(self, plan: BatchPlan, offer: Offer) -> bool:
        """False where a directory that can't be asked may hold what these files give up."""
        if not offer.lost:
            return True
        list(staged_files(self.services, self._asked))
        return not any(
            each.files.may_hold(plan.topic_id, lost)
            for each in self._asked.notes.values()
            for lost in offer.lost
        )

    def _standing(self) -> frozenset[BatchId]:
        """The batches whose claims stay, for their own attempts could not be asked."""
        ids = frozenset(each.plan.batch_id for each in self.pending.batches)
        return frozenset(filter(self._waits, ids))

    def _provable_files(self) -> Iterator[FreeFiles]:
        """Files of batches that were taken apart, or given up, that can be committed."""
        services, snapshot = self.services, self.pending.seen.snapshot
        accounts = services.ledger.accounts(services.feed_name)
        wanted, standing = [*self.pending.lost, *self.pending.failing_claims], self._standing()
        for free in list(free_files(services, wanted, accounts, standing, self._asked)):
            with self._asking(free.plan), self._asked.noting(free.staging):
                if is_provable(services, free, snapshot):
                    yield free
                else:
                    self._asked.answered.add(str(free.staging))

    @contextmanager
    def _asking(self, plan: BatchPlan) -> Iterator[None]:
        """Ends the settling of one batch at an error, and says so; raises what the ledger can't
        answer.
        """
        try:
            with at(self.services, "settle", plan):
                yield
        except (LedgerUnavailable, CommitOutcomeUnknown):
            raise
        except IngestionError as error:
            self._left.add(plan.batch_id)
            log.warning(
                "What attempts of batch %s hold can't be settled now, and its claims stand: %s",
                plan.batch_id,
                error,
            )
