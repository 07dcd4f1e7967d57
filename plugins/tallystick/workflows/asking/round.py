"""One round of asking attempts what they hold: whom it asks, what is committed, what it has heard.

A run and a look go the same way. `ask` commits in the ledger what is offered; `foreseeing` commits
in accounts that take the ledger's place.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from tallystick.domain.attempts.asked import Asked
from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.batches.paths import StagingPath
from tallystick.domain.identities import BatchId, FencingToken
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.danger import InDanger
from tallystick.domain.planning.log_changes import Accounts
from tallystick.domain.rules.findings import Finding
from tallystick.errors import (
    CommitOutcomeUnknown,
    FileMissing,
    IngestionError,
    LedgerBehind,
    LedgerUnavailable,
    ManifestMismatch,
    SourceChanged,
    VerificationFailed,
)
from tallystick.workflows.asking.claiming_again import ClaimedAgain, FreeFiles, free_files
from tallystick.workflows.asking.offers import Offer, offers_of, parts_of
from tallystick.workflows.asking.staged_batches import staged_batches
from tallystick.workflows.place import at
from tallystick.workflows.services import Services
from tallystick.workflows.stored.kept_files import kept_files
from tallystick.workflows.stored.published_batches import feed_roots
from tallystick.workflows.stored.staged_attempts import proven_manifest, quarantined_at
from tallystick.workflows.stored.unanswered import Unanswered

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answers:
    """What asking the attempts has come to."""

    committed: Sequence[BatchPlan]
    asked: Asked
    """What the attempts of all other batches say that could be asked."""
    findings: Sequence[Finding] = ()
    """The losses that came with a commit: ends of claims that nobody could prove."""


class Committer(Protocol):
    """Commits what a round is offered: a run in the ledger, a look in accounts of its own."""

    @property
    def findings(self) -> Sequence[Finding]:
        """The losses that came with the commits."""
        ...

    def accounts(self) -> Accounts:
        """What the ledger holds by now."""
        ...

    def status(self, batch: BatchStatus) -> BatchStatus:
        """The batch as it stands by now."""
        ...

    def commit(self, batch: BatchStatus, offer: Offer) -> bool:
        """True once the offer is committed, False where the batch is over, or must wait.

        Raises BatchBusy; VerificationFailed, ManifestMismatch, FileMissing or SourceChanged where
        the files prove too little.
        """
        ...

    def claim_again(self, free: FreeFiles, standing: Collection[BatchId]) -> ClaimedAgain | None:
        """A batch of their own for such files; None when their offsets are free no more."""
        ...


@dataclass(slots=True)
class Round:
    """Asks about one look at the log. Changes nothing but by its committer."""

    services: Services
    danger: InDanger
    unanswered: Unanswered
    tokens: dict[BatchId, FencingToken] = field(default_factory=dict)
    """Batches of which nothing can be committed, by their newest token then."""
    busy: list[OffsetRange] = field(default_factory=list)
    """What another run is at just now, of files that no batch claims any more."""
    _committed: list[BatchPlan] = field(default_factory=list)
    _places: set[str] = field(default_factory=set)
    """Where files would be kept that are committed instead."""
    _offers: dict[BatchId, list[Offer]] = field(default_factory=dict)

    @property
    def standing(self) -> frozenset[BatchId]:
        """The batches in danger whose attempts could not be asked, so far: their claims stay."""
        return frozenset(each.plan.batch_id for each in self.danger.batches) - self.tokens.keys()

    def ask(self, committer: Committer, before: Asked | None) -> Answers:
        """Let what attempts hold of what would be lost be committed, whatever batch they are of.

        What can't be asked now is named, and is not lost.

        `before` is what was answered to an earlier look of the same plan.
        """
        for batch in self.danger.batches:
            self._ask_batch(committer, batch)
        for free in self._provable_files(committer.accounts()):
            again: ClaimedAgain | None = None
            with self._asking_free(free), self.unanswered.committing(free.staging):
                again = committer.claim_again(free, self.standing)
            if again:
                self._ask_batch(committer, again.status, [again.staging])
        found = kept_files(self.services, self.unanswered)
        kept = tuple(each for each in found if each.place not in self._places)
        offsets = (*(before.offsets if before else ()), *self.danger.lost)
        asked = Asked(self.tokens, kept, tuple(self.busy), offsets, self.unanswered.unasked)
        return Answers(self._committed, asked, committer.findings)

    def _ask_batch(
        self,
        committer: Committer,
        batch: BatchStatus,
        staged: Sequence[StagingPath] | None = None,
    ) -> None:
        """Commit the first offer of the batch that can be, and note how it stands then."""
        batch_id = batch.plan.batch_id
        with self.asking(batch.plan):
            for offer in self.offers(batch, staged):
                if not self._takes_from_nobody(batch.plan, offer):
                    continue
                with self.unanswered.committing(offer.staging):
                    if _is_committed(committer, batch, offer):
                        self._places.add(quarantined_at(self.services, offer.staging))
                        break
            now = committer.status(batch)
            if now.state.is_committed:
                self._committed.append(now.plan)
                self.unanswered.pass_over(batch_id)
            elif not self.unanswered.is_about(batch_id):
                self.tokens[batch_id] = now.newest_token

    def offers(
        self, batch: BatchStatus, staged: Sequence[StagingPath] | None = None
    ) -> list[Offer]:
        """What the batch's attempts hold that can be committed; asked once in a round.

        They are `staged` there, or where its attempts are.
        """
        plan = batch.plan
        if plan.batch_id not in self._offers:
            if staged is None:
                staged = self.unanswered.attempts_of(plan.root, plan.batch_id)
            snapshot = self.danger.seen.snapshot
            found = offers_of(self.services, plan, staged, snapshot, self.unanswered)
            self._offers[plan.batch_id] = found
        return self._offers[plan.batch_id]

    @contextmanager
    def asking(self, plan: BatchPlan) -> Iterator[None]:
        """Ends the asking of one batch at an error, and says so; raises what the ledger can't
        answer.

        Only files that can't be proven are an answer, and that is no error here.
        """
        try:
            with at(self.services, "ask", plan):
                yield
        except (LedgerUnavailable, CommitOutcomeUnknown):
            raise
        except IngestionError as error:
            log.warning(
                "Batch %s can't be asked now what it holds, and keeps its claims: %s",
                plan.batch_id,
                error,
            )

    @contextmanager
    def _asking_free(self, free: FreeFiles) -> Iterator[None]:
        """Asks files that no batch claims; what another run is at just now is noted as busy."""
        is_asked = False
        with self.asking(free.plan):
            yield
            is_asked = True
        if not is_asked:
            self.busy += free.offsets

    def _takes_from_nobody(self, plan: BatchPlan, offer: Offer) -> bool:
        """False where a directory that could not be asked may hold what these files give up."""
        if offer.lost:
            kept_files(self.services, self.unanswered)
        return not any(
            each.files.may_hold(plan.topic_id, lost)
            for each in (self.unanswered.unasked if offer.lost else ())
            for lost in offer.lost
        )

    def _provable_files(self, accounts: Accounts) -> list[FreeFiles]:
        """Files of batches that were taken apart, or given up, that can be committed."""
        found: list[FreeFiles] = []
        lost, snapshot = self.danger.lost, self.danger.seen.snapshot
        for free in free_files(self.services, lost, accounts, self.standing, self.unanswered):
            with self._asking_free(free), self.unanswered.noting(free.staging):
                if proven_manifest(self.services, free.staging) or parts_of(
                    self.services, free.plan, free.staging, snapshot
                ):
                    found.append(free)
        return found

    def require_none_forgotten(self) -> None:
        """Raise LedgerBehind when the storage holds what would be lost, in batches that this ledger
        has never heard of: it was restored, and a rebuild may enter them.
        """
        lost = [each.offsets for each in self.danger.changes.lost]
        if not lost:
            return
        topic_ids = {each.topic_id for each in self.danger.accounts.generations.values()}
        forgotten = [
            each.directory
            for each in staged_batches(self.services, feed_roots(self.services), self.unanswered)
            if each.plan.topic_id in topic_ids
            and any(
                planned.offsets.intersection(offsets)
                for planned in each.plan.ranges
                for offsets in lost
            )
        ]
        if forgotten:
            raise LedgerBehind(self.services.feed_name, forgotten)


def _is_committed(committer: Committer, batch: BatchStatus, offer: Offer) -> bool:
    """False where the batch is over, and where the files prove too little."""
    try:
        return committer.commit(batch, offer)
    except (VerificationFailed, ManifestMismatch, FileMissing, SourceChanged) as error:
        log.warning("%s", error)
        return False
