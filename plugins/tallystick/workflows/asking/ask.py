"""Asks the attempts of a batch what they hold, before anything that it claims is called lost.

What they have proven is committed. Complete files are proven now, as far as the log still tells.
The rest is left where it is, for the sweeper to quarantine, and is named with the loss.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field

from tallystick.domain.attempts.asked import Asked
from tallystick.domain.batches.batch import Attempt, BatchPlan, BatchStatus
from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.planning.danger import InDanger
from tallystick.domain.planning.log_changes import Accounts
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.log_findings import change_findings
from tallystick.workflows.asking.claiming_again import ClaimedAgain, FreeFiles, claimed_again
from tallystick.workflows.asking.offers import Offer
from tallystick.workflows.asking.round import Answers, Round
from tallystick.workflows.committing.taking_over import commit_proven, take_over
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.services import Services
from tallystick.workflows.stored.kept_files import kept_by_others
from tallystick.workflows.stored.unanswered import Unanswered

log = logging.getLogger(__name__)


def ask_attempts(
    services: Services, danger: InDanger, owner: Owner, before: Asked | None
) -> Answers:
    """Commit what attempts hold of what would be lost; `before` as in `Round.ask`.

    Raises LedgerBehind when the storage holds what would be lost, in batches that this ledger has
    never heard of.
    """
    asking = Round(services, danger, Unanswered(services, ends_orphans=True))
    asking.require_none_forgotten()
    return asking.ask(_InLedger(services, danger, owner), before)


@dataclass(slots=True)
class _InLedger:
    """Fulfils `Committer` for the run of this owner."""

    services: Services
    danger: InDanger
    owner: Owner
    findings: list[Finding] = field(default_factory=list)

    def accounts(self) -> Accounts:
        return self.services.ledger.accounts(self.services.feed_name)

    def status(self, batch: BatchStatus) -> BatchStatus:
        return self.services.ledger.batch(batch.plan.batch_id)

    def claim_again(self, free: FreeFiles, standing: Collection[BatchId]) -> ClaimedAgain | None:
        return claimed_again(self.services, free, standing, self.owner)

    def commit(self, batch: BatchStatus, offer: Offer) -> bool:
        plan, old = batch.plan, offer.staging.attempt_id
        attempt = take_over(self.services, plan, old, self.owner)
        if attempt is None:
            return False
        if offer.manifest:
            commit_proven(self.services, attempt, offer.manifest)
        else:
            self._give_up(plan, attempt, offer)
            verify_and_commit(self.services, attempt)
        log.warning(
            "Batch %s: what %s holds can't be read again, and is committed.",
            plan.batch_id,
            offer.staging,
        )
        return True

    def _give_up(self, plan: BatchPlan, attempt: Attempt, offer: Offer) -> None:
        """The ends of claims that nobody can prove are lost; the token keeps others away."""
        services, danger = self.services, self.danger
        if not offer.lost:
            return
        kept = kept_by_others(services, plan, attempt.attempt_id, offer.lost)
        wanted = danger.given_up(plan, offer.parts, kept)
        with services.ledger.planning(services.feed_name, services.topic) as session:
            if session.apply(wanted, None) is None:
                return
            found = change_findings(
                services.feed_name, danger.accounts.generations, wanted, danger.seen
            )
            session.record_findings(found)
            # A plan of its own, for what is found here is this run's news, whatever follows.
            session.freeze(None, (), (), owner=self.owner, lease=services.lease)
        self.findings += found
