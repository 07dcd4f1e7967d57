"""One round of asking attempts what they hold: whom it asks, and what it has heard so far."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from tallystick.domain.attempts.asked import Asked
from tallystick.domain.attempts.last_copies import KeptFiles
from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.identities import BatchId, FencingToken
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.danger import InDanger
from tallystick.domain.planning.log_changes import Accounts
from tallystick.errors import (
    CommitOutcomeUnknown,
    IngestionError,
    LedgerBehind,
    LedgerUnavailable,
)
from tallystick.workflows.asking.claiming_again import FreeFiles, free_files
from tallystick.workflows.asking.offers import Offer, offers_of, parts_of
from tallystick.workflows.asking.staged_batches import staged_batches
from tallystick.workflows.place import at
from tallystick.workflows.services import Services
from tallystick.workflows.stored.kept_files import kept_files
from tallystick.workflows.stored.published_batches import feed_roots
from tallystick.workflows.stored.staged_attempts import proven_manifest
from tallystick.workflows.stored.unanswered import Unanswered

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Round:
    """Asks about one look at the log. Changes nothing by itself."""

    services: Services
    danger: InDanger
    unanswered: Unanswered
    tokens: dict[BatchId, FencingToken] = field(default_factory=dict)
    """Batches of which nothing can be committed, by their newest token then."""
    busy: list[OffsetRange] = field(default_factory=list)
    """What another run is at just now, of files that no batch claims any more."""
    _offers: dict[BatchId, list[Offer]] = field(default_factory=dict)

    @property
    def standing(self) -> frozenset[BatchId]:
        """The batches in danger whose attempts could not be asked, so far: their claims stay."""
        return frozenset(each.plan.batch_id for each in self.danger.batches) - self.tokens.keys()

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
    def asking_free(self, free: FreeFiles) -> Iterator[None]:
        """Asks files that no batch claims; what another run is at just now is noted as busy."""
        is_asked = False
        with self.asking(free.plan):
            yield
            is_asked = True
        if not is_asked:
            self.busy += free.offsets

    def offers(self, status: BatchStatus) -> list[Offer]:
        """What the batch's attempts hold that can be committed; asked once in a round."""
        batch_id = status.plan.batch_id
        if batch_id not in self._offers:
            snapshot = self.danger.seen.snapshot
            self._offers[batch_id] = offers_of(self.services, status, snapshot, self.unanswered)
        return self._offers[batch_id]

    def takes_from_nobody(self, plan: BatchPlan, offer: Offer) -> bool:
        """False where a directory that could not be asked may hold what these files give up."""
        if offer.lost:
            kept_files(self.services, self.unanswered)
        return not any(
            each.files.may_hold(plan.topic_id, lost)
            for each in (self.unanswered.unasked if offer.lost else ())
            for lost in offer.lost
        )

    def has_nothing(self, status: BatchStatus) -> None:
        """Note that nothing of the batch can be committed, if all of its attempts were asked."""
        if not self.unanswered.is_about(status.plan.batch_id):
            self.tokens[status.plan.batch_id] = status.newest_token

    def provable_files(self, accounts: Accounts) -> list[FreeFiles]:
        """Files of batches that were taken apart, or given up, that can be committed."""
        found: list[FreeFiles] = []
        lost, snapshot = self.danger.lost, self.danger.seen.snapshot
        for free in free_files(self.services, lost, accounts, self.standing, self.unanswered):
            with self.asking_free(free), self.unanswered.noting(free.staging):
                if proven_manifest(self.services, free.staging):
                    found.append(free)
                elif parts := parts_of(self.services, free.plan, free.staging, snapshot):
                    found.append(replace(free, parts=parts))
        return found

    def heard(self, before: Asked | None, kept: tuple[KeptFiles, ...]) -> Asked:
        """What came of it; `before` is what was answered to an earlier look of the same plan."""
        offsets = (*(before.offsets if before else ()), *self.danger.lost)
        return Asked(self.tokens, kept, tuple(self.busy), offsets, self.unanswered.unasked)

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
