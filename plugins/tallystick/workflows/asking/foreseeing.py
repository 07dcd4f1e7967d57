"""Foresees what asking the attempts would come to, for looks that change nothing.

It goes the way of `ask`, and proves by the same functions what is offered.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from tallystick.domain.attempts.asked import Asked, Unasked
from tallystick.domain.batches.batch import Attempt, BatchPlan, BatchStatus
from tallystick.domain.batches.states import BatchState
from tallystick.domain.batches.taking import Beginning, beginning, is_free_for
from tallystick.domain.identities import BatchId, FencingToken, Owner, foreseen_batch
from tallystick.domain.planning.accounts_after import (
    accounts_after,
    accounts_after_claim,
    accounts_after_commit,
)
from tallystick.domain.planning.claiming_again import claim_again
from tallystick.domain.planning.danger import InDanger, danger_in
from tallystick.domain.planning.log_changes import Accounts, LogChanges, Observation
from tallystick.domain.planning.log_judgement import judge_logs
from tallystick.domain.rules.a10_ledger_behind import perhaps_landed
from tallystick.domain.rules.findings import Finding, foreseen
from tallystick.domain.rules.log_findings import change_findings, foreseen_findings
from tallystick.errors import BatchBusy, BatchUnknown, LedgerBehind, VerificationFailed
from tallystick.workflows.asking.claiming_again import ClaimedAgain, FreeFiles
from tallystick.workflows.asking.offers import Offer
from tallystick.workflows.asking.round import Answers, Round
from tallystick.workflows.committing.proving import NotProven, judged
from tallystick.workflows.committing.taking_over import kept_beside, require_no_row_taken
from tallystick.workflows.services import Services
from tallystick.workflows.stored.kept_files import kept_by_others, kept_files
from tallystick.workflows.stored.unanswered import Unanswered, batch_in

log = logging.getLogger(__name__)

_NOBODY: Final = Owner("nobody")


@dataclass(frozen=True, slots=True)
class Foresight:
    """What asking would come to, and what the ledger would hold then."""

    answers: Answers
    accounts: Accounts


def foresee(
    services: Services, danger: InDanger, owner: Owner | None, before: Asked | None
) -> Foresight:
    """What `ask_attempts` would come to; changes nothing, and raises LedgerBehind as it would."""
    asking = Round(services, danger, Unanswered.for_look(services))
    asking.require_none_forgotten()
    return _foresight(asking, owner, before)


@dataclass(frozen=True, slots=True)
class ToCome:
    """What the next plan will find, as far as its attempts can be asked now."""

    findings: Sequence[Finding]
    unasked: Sequence[Unasked] = ()
    """The directories that could not be asked."""


def foresee_plan(services: Services, accounts: Accounts, seen: Observation) -> ToCome:
    """What a look foresees; changes nothing.

    UNKNOWN instead of lost where the storage holds it in batches that this ledger never heard of,
    or may hold it where nobody could ask.
    """
    danger = danger_in(accounts, seen, services.isolation)
    asking = Round(services, danger, Unanswered.for_look(services))
    behind: LedgerBehind | None = None
    asked: Asked | None = None
    given_up: Sequence[Finding] = ()
    try:
        asking.require_none_forgotten()
    except LedgerBehind as error:
        log.warning("%s", error)
        behind = error
    if danger.is_to_be_asked():
        foresight = _foresight(asking, None, None)
        asked, given_up = foresight.answers.asked, foresight.answers.findings
        danger = danger_in(foresight.accounts, seen, services.isolation)
    changes = judge_logs(danger.accounts, seen, asked) if asked else danger.changes
    feed, known = services.feed_name, danger.accounts.generations
    plan_will_find = foreseen_findings(feed, known, changes, seen)
    found = {each.key: each for each in (*map(foreseen, given_up), *plan_will_find)}
    at_stake = danger.at_stake(asked)
    _ask_told(asking)
    unasked = {each.path: each for each in (*at_stake, *asking.unanswered.still_told)}
    findings = tuple(found.values())
    return ToCome(perhaps_landed(findings) if behind else findings, tuple(unasked.values()))


def _foresight(asking: Round, owner: Owner | None, before: Asked | None) -> Foresight:
    committer = _InAccounts(asking.services, asking.danger, owner, asking.unanswered)
    answers = asking.ask(committer, before)
    return Foresight(answers, committer.accounts())


def _ask_told(asking: Round) -> None:
    """Ask what is told, also where nothing is in danger now: who did not ask ends nothing."""
    services, unanswered = asking.services, asking.unanswered
    for batch_id in {batch_in(each) for each in unanswered.told}:
        with suppress(BatchUnknown):
            batch = services.ledger.batch(batch_id)
            with asking.asking(batch.plan):
                if asking.offers(batch):
                    unanswered.keep_told(batch_id)
    if unanswered.told:
        kept_files(services, unanswered)


class _InAccounts:
    """Fulfils `Committer` for a look: accounts take the place of the ledger."""

    def __init__(
        self, services: Services, danger: InDanger, owner: Owner | None, unanswered: Unanswered
    ) -> None:
        self.findings: list[Finding] = []
        self._services, self._danger, self._owner = services, danger, owner
        self._unanswered, self._accounts = unanswered, danger.accounts
        self._committed: dict[BatchId, BatchStatus] = {}

    def accounts(self) -> Accounts:
        return self._accounts

    def status(self, batch: BatchStatus) -> BatchStatus:
        batch_id = batch.plan.batch_id
        unfinished = {each.plan.batch_id: each for each in self._accounts.unfinished}
        given_up = replace(batch, state=BatchState.ABANDONED)
        return unfinished.get(batch_id) or self._committed.get(batch_id, given_up)

    def claim_again(self, free: FreeFiles, standing: Collection[BatchId]) -> ClaimedAgain | None:
        claim = claim_again(free.old, free.offsets, self._accounts, standing)
        if claim is None:
            return None
        freed = accounts_after(self._accounts, LogChanges(cuts=claim.cuts))
        batch_id = foreseen_batch(free.old.batch_id, free.staging.attempt_id)
        plan = replace(free.old, batch_id=batch_id, ranges=claim.ranges)
        batch = BatchStatus(plan, BatchState.PLANNED, FencingToken(0), 0, None, 0.0, None)
        self._accounts = accounts_after_claim(freed, batch)
        return ClaimedAgain(batch, free.staging)

    def commit(self, batch: BatchStatus, offer: Offer) -> bool:
        batch_id, services, danger = batch.plan.batch_id, self._services, self._danger
        token = self._token(self.status(batch), offer)
        if token is None or self._unanswered.keep_told(batch_id):
            return False
        self._begin(batch_id, token)
        if offer.lost:
            kept = kept_by_others(services, batch.plan, offer.staging.attempt_id, offer.lost)
            made = danger.given_up(batch.plan, offer.parts, kept)
            known = danger.accounts.generations
            self.findings += change_findings(services.feed_name, known, made, danger.seen)
            self._accounts = accounts_after(self._accounts, made)
        left = self.status(batch)
        # Told as the batch in whose directory its files lie: one of their own has no id yet.
        plan = replace(left.plan, batch_id=offer.staging.batch_id)
        self._require_proven(plan, token, offer)
        self._accounts = accounts_after_commit(self._accounts, left.plan)
        self._committed[batch_id] = replace(left, plan=plan, state=BatchState.COMMITTED)
        return True

    def _token(self, now: BatchStatus, offer: Offer) -> FencingToken | None:
        """The token that takes the files over; None where the batch is over. Raises BatchBusy."""
        known = self._services.ledger.attempt(offer.staging.attempt_id)
        newest = (now.plan.batch_id, now.newest_token)
        is_newest = known is not None and (known.batch_id, known.token) == newest
        is_free = is_free_for(self._owner, now.holder, now.lease_seconds_left)
        own = now.newest_token if is_newest else None
        answer = beginning(now.state, now.newest_token, own, is_free=is_free)
        if answer is Beginning.BUSY:
            raise BatchBusy(now.plan.batch_id, str(now.holder), now.lease_seconds_left)
        if answer is Beginning.OVER:
            return None
        return own or FencingToken(now.newest_token + 1)

    def _begin(self, batch_id: BatchId, token: FencingToken) -> None:
        """As the batch stands if the attempt then fails: it gives the lease back."""
        unfinished = [
            replace(each, newest_token=token, lease_seconds_left=0.0, holder=None)
            if each.plan.batch_id == batch_id
            else each
            for each in self._accounts.unfinished
        ]
        self._accounts = replace(self._accounts, unfinished=unfinished)

    def _require_proven(self, plan: BatchPlan, token: FencingToken, offer: Offer) -> None:
        """Raise what a commit of the offer raises."""
        services = self._services
        staging = offer.staging
        attempt = Attempt(staging.attempt_id, staging.batch_id, token, self._owner or _NOBODY)
        manifest = offer.manifest
        if manifest is None:
            ids = {each.generation_id for each in plan.ranges}
            known = self._accounts.generations.values()
            logs = [each for each in known if each.generation_id in ids]
            proof = judged(services, attempt, plan, lambda: logs)
            if isinstance(proof, NotProven):
                raise VerificationFailed(plan.batch_id, proof.problems)
            manifest = proof
        require_no_row_taken(services, manifest)
        kept_beside(services, attempt, manifest)
