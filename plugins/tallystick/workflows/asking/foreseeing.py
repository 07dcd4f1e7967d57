"""Foresees what asking the attempts would come to, for looks that change nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tallystick.domain.attempts.asked import Asked, Unasked
from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId, FencingToken, Owner
from tallystick.domain.planning.accounts_after import accounts_after, accounts_after_commit
from tallystick.domain.planning.claiming_again import claim_again
from tallystick.domain.planning.danger import InDanger, danger_in
from tallystick.domain.planning.log_changes import Accounts, LogChanges, Observation
from tallystick.domain.planning.log_judgement import log_changes
from tallystick.domain.rules.a10_ledger_behind import perhaps_landed
from tallystick.domain.rules.findings import Finding, foreseen
from tallystick.domain.rules.log_findings import change_findings, foreseen_findings
from tallystick.errors import BatchUnknown, LedgerBehind
from tallystick.workflows.asking.ask import Answers
from tallystick.workflows.asking.claiming_again import FreeFiles
from tallystick.workflows.asking.offers import Offer
from tallystick.workflows.asking.round import Round
from tallystick.workflows.services import Services
from tallystick.workflows.stored.kept_files import kept_by_others, kept_files
from tallystick.workflows.stored.staged_attempts import put_aside_at
from tallystick.workflows.stored.unanswered import Unanswered, batch_in

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Foresight:
    """What asking would come to, and what the ledger would hold then."""

    answers: Answers
    accounts: Accounts


def foresee(
    services: Services, danger: InDanger, owner: Owner | None, before: Asked | None
) -> Foresight:
    """What `ask_attempts` would come to; changes nothing, and raises LedgerBehind as it would."""
    asking = _Foreseeing(Round(services, danger, Unanswered.for_look(services)), owner)
    asking.round.require_none_forgotten()
    return asking.foresight(before)


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
    asking = _Foreseeing(Round(services, danger, Unanswered.for_look(services)), None)
    behind: LedgerBehind | None = None
    asked: Asked | None = None
    given_up: Sequence[Finding] = ()
    try:
        asking.round.require_none_forgotten()
    except LedgerBehind as error:
        log.warning("%s", error)
        behind = error
    if danger.is_to_be_asked():
        foresight = asking.foresight(None)
        asked, given_up = foresight.answers.asked, foresight.answers.findings
        danger = danger_in(foresight.accounts, seen, services.isolation)
    changes = log_changes(danger.accounts, seen, asked) if asked else danger.changes
    feed, known = services.feed_name, danger.accounts.generations
    plan_will_find = foreseen_findings(feed, known, changes, seen)
    found = {each.key: each for each in (*map(foreseen, given_up), *plan_will_find)}
    at_stake = danger.at_stake(asked)
    asking.ask_again()
    unasked = {each.path: each for each in (*at_stake, *asking.round.unanswered.still_told)}
    findings = tuple(found.values())
    return ToCome(perhaps_landed(findings) if behind else findings, tuple(unasked.values()))


class _Foreseeing:
    """A round in which accounts take the place of the ledger that a commit would change."""

    def __init__(self, asked_in: Round, owner: Owner | None) -> None:
        self.round = asked_in
        self._services, self._danger, self._owner = asked_in.services, asked_in.danger, owner
        self._accounts = asked_in.danger.accounts
        self._committed: list[BatchPlan] = []
        self._findings: list[Finding] = []
        self._places: set[str] = set()
        """Where files would be kept that are committed instead."""

    def foresight(self, before: Asked | None) -> Foresight:
        """What asking would come to."""
        for status in self._danger.batches:
            self._ask(status)
        for free in self.round.provable_files(self._accounts):
            self._claim_again(free)
        found = kept_files(self._services, self.round.unanswered)
        kept = tuple(each for each in found if each.place not in self._places)
        answers = Answers(self._committed, self.round.heard(before, kept), self._findings)
        return Foresight(answers, self._accounts)

    def ask_again(self) -> None:
        """Ask what is told, also where nothing is in danger now: who did not ask ends nothing."""
        services, unanswered = self._services, self.round.unanswered
        for batch_id in {batch_in(each) for each in unanswered.told}:
            with suppress(BatchUnknown):
                status = services.ledger.batch(batch_id)
                with self.round.asking(status.plan):
                    if self.round.offers(status):
                        unanswered.keep_told(batch_id)
        if unanswered.told:
            kept_files(services, unanswered)

    def _ask(self, status: BatchStatus) -> None:
        plan, unanswered = status.plan, self.round.unanswered
        with self.round.asking(plan):
            offer = next(
                (
                    each
                    for each in self.round.offers(status)
                    if self.round.takes_from_nobody(plan, each)
                ),
                None,
            )
            if offer is None:
                self.round.has_nothing(status)
            elif not self._is_anothers(status, offer) and not unanswered.keep_told(plan.batch_id):
                unanswered.pass_over(plan.batch_id)
                self._commit(plan, offer)

    def _is_anothers(self, status: BatchStatus, offer: Offer) -> bool:
        """True while another owner's lease runs: nobody begins an attempt.

        The newest attempt needs no new token: whoever finds its files commits them.
        """
        if status.lease_seconds_left <= 0 or status.holder == self._owner:
            return False
        dead = self._services.ledger.dead_attempts(self._services.feed_name)
        is_dead = any(each.attempt.attempt_id == offer.staging.attempt_id for each in dead)
        return is_dead or status.newest_token == 0

    def _claim_again(self, free: FreeFiles) -> None:
        claim = claim_again(free.old, free.offsets, self._accounts, self.round.standing)
        if claim is None:
            return
        freed = accounts_after(self._accounts, LogChanges(cuts=claim.cuts))
        # It has no id before it is claimed: any that no other batch has will do.
        batch_id = BatchId(f"{free.old.batch_id}/{free.staging.attempt_id}")
        plan = replace(free.old, batch_id=batch_id, ranges=claim.ranges)
        status = BatchStatus(plan, BatchState.PLANNED, FencingToken(0), 0, None, 0.0, None)
        self._accounts = replace(freed, unfinished=[*freed.unfinished, status])
        self._commit(plan, Offer(free.staging, None, free.parts))

    def _commit(self, plan: BatchPlan, offer: Offer) -> None:
        """Take the offer for committed, and what it gives up for lost."""
        services, danger = self._services, self._danger
        if offer.lost:
            attempt_id = offer.staging.attempt_id
            kept = kept_by_others(services, plan, attempt_id, offer.lost)
            made = danger.given_up(plan, offer.parts, kept)
            known = danger.accounts.generations
            self._findings += change_findings(services.feed_name, known, made, danger.seen)
            self._accounts = accounts_after(self._accounts, made)
        [left] = [
            each.plan for each in self._accounts.unfinished if each.plan.batch_id == plan.batch_id
        ]
        self._accounts = accounts_after_commit(self._accounts, left)
        self._committed.append(replace(left, batch_id=offer.staging.batch_id))
        self._places.add(put_aside_at(services, offer.staging))
