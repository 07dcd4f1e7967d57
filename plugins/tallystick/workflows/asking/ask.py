"""Asks the attempts of a batch what they hold, before anything that it claims is called lost.

What they have proven is committed. Complete files are proven now, as far as the log still tells.
The rest is left where it is, for the sweeper to put aside, and is named with the loss.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tallystick.domain.attempts.asked import Asked
from tallystick.domain.batches.batch import Attempt, BatchPlan, BatchStatus
from tallystick.domain.identities import Owner
from tallystick.domain.planning.danger import InDanger
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.log_findings import change_findings
from tallystick.errors import (
    FileMissing,
    ManifestMismatch,
    SourceChanged,
    VerificationFailed,
)
from tallystick.workflows.asking.claiming_again import claimed_again
from tallystick.workflows.asking.offers import Offer
from tallystick.workflows.asking.round import Round
from tallystick.workflows.committing.taking_over import commit_proven, take_over
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.services import Services
from tallystick.workflows.stored.kept_files import kept_by_others, kept_files
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


def ask_attempts(
    services: Services, danger: InDanger, owner: Owner, before: Asked | None
) -> Answers:
    """Commit what attempts hold of what would be lost, whatever batch they are of.

    What can't be asked now is named, and is not lost.

    `before` is what they answered to an earlier look of the same plan.
    Raises LedgerBehind when the storage holds what would be lost, in batches that this ledger has
    never heard of.
    """
    asking = _Committing(Round(services, danger, Unanswered(services)), owner)
    asking.round.require_none_forgotten()
    for status in danger.batches:
        asking.commit_batch(status)
    accounts = services.ledger.accounts(services.feed_name)
    for free in asking.round.provable_files(accounts):
        claimed: list[BatchStatus] = []
        with asking.round.asking_free(free), asking.round.unanswered.committing(free.staging):
            claimed += claimed_again(services, free, asking.round.standing, owner)
        for status in claimed:
            asking.commit_batch(status)
    kept = kept_files(services, asking.round.unanswered)
    return Answers(asking.committed, asking.round.heard(before, kept), asking.findings)


class _Committing:
    """A round that commits what it is offered."""

    def __init__(self, asked_in: Round, owner: Owner) -> None:
        self.round = asked_in
        self.committed: list[BatchPlan] = []
        self.findings: list[Finding] = []
        self._services, self._owner = asked_in.services, owner

    def commit_batch(self, status: BatchStatus) -> None:
        """Commit the first offer of the batch that can be, and note how it stands then."""
        batch_id, unanswered = status.plan.batch_id, self.round.unanswered
        with self.round.asking(status.plan):
            for offer in self.round.offers(status):
                if not self.round.takes_from_nobody(status.plan, offer):
                    continue
                with unanswered.committing(offer.staging):
                    if self._is_committed(status.plan, offer):
                        log.warning(
                            "Batch %s: what %s holds can't be read again, and is committed.",
                            batch_id,
                            offer.staging,
                        )
                        break
            now = self._services.ledger.batch(batch_id)
            if now.state.is_committed:
                self.committed.append(now.plan)
                unanswered.pass_over(batch_id)
            else:
                self.round.has_nothing(now)

    def _is_committed(self, plan: BatchPlan, offer: Offer) -> bool:
        """True when the ledger has the offer, False where its files prove too little."""
        services, old = self._services, offer.staging.attempt_id
        try:
            attempt = take_over(services, plan, old, self._owner)
            if attempt is None:
                return False
            if offer.manifest:
                commit_proven(services, attempt, offer.manifest)
            else:
                self._give_up(plan, attempt, offer)
                verify_and_commit(services, attempt, landed_by=old)
        except (VerificationFailed, ManifestMismatch, FileMissing, SourceChanged) as error:
            log.warning("%s", error)
            return False
        return True

    def _give_up(self, plan: BatchPlan, attempt: Attempt, offer: Offer) -> None:
        """The ends of claims that nobody can prove are lost; the token keeps others away."""
        services, danger = self._services, self.round.danger
        if not offer.lost:
            return
        kept = kept_by_others(services, plan, attempt.attempt_id, offer.lost)
        wanted = danger.given_up(plan, offer.parts, kept)
        with services.ledger.planning(services.feed_name, services.topic) as session:
            made = replace(wanted, cuts=session.apply(wanted, None).changes.cuts)
            found = change_findings(
                services.feed_name, danger.accounts.generations, made, danger.seen
            )
            session.record_findings(found)
            # A plan of its own, for what is found here is this run's news, whatever follows.
            session.freeze(None, (), (), owner=self._owner, lease=services.lease)
        self.findings += found
