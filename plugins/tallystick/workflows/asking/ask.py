"""Asks the attempts of a batch what they hold, before anything that it claims is called lost.

What they have proven is committed. Complete files are proven now, as far as the log still tells.
The rest is left where it is, for the sweeper to put aside, and is named with the loss.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain

from tallystick.domain.attempts.asked import Asked, Unasked
from tallystick.domain.attempts.last_copies import ProvablePart, places_for
from tallystick.domain.batches.batch import Attempt, BatchPlan, BatchStatus
from tallystick.domain.batches.states import RangeState
from tallystick.domain.identities import BatchId, FencingToken, Owner
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.isolating import taken_apart, to_be_asked
from tallystick.domain.planning.log_changes import Accounts, CutClaim, LogChanges, Observation
from tallystick.domain.planning.log_judgement import log_changes
from tallystick.domain.rules.a10_ledger_behind import perhaps_landed
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.rules.log_findings import change_findings, foreseen_findings
from tallystick.errors import (
    BatchUnknown,
    CommitOutcomeUnknown,
    FileMissing,
    IngestionError,
    LedgerBehind,
    LedgerUnavailable,
    ManifestMismatch,
    SourceChanged,
    VerificationFailed,
)
from tallystick.workflows.asking.claiming_again import FreeFiles, claimed_again, free_files
from tallystick.workflows.asking.offers import Offer, offers_of, parts_of
from tallystick.workflows.asking.staged_batches import staged_batches
from tallystick.workflows.committing.taking_over import commit_proven, take_over
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.place import at
from tallystick.workflows.services import Services
from tallystick.workflows.stored.kept_files import kept_by_others, kept_files
from tallystick.workflows.stored.published_batches import feed_roots
from tallystick.workflows.stored.staged_attempts import proven_manifest
from tallystick.workflows.stored.unanswered import Unanswered, batch_in

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InDanger:
    """A look at the log after which claims would end; nothing of it is on record yet."""

    accounts: Accounts
    seen: Observation
    changes: LogChanges
    """If no attempt held anything."""
    taken_apart: frozenset[BatchId]
    """The batches that would release claims, or set offsets aside when they fail once more: what
    their attempts hold can't be committed any more then."""

    @property
    def batches(self) -> list[BatchStatus]:
        """Those that would lose claims, or release them."""
        ids = self.changes.in_danger | self.taken_apart
        return [each for each in self.accounts.unfinished if each.plan.batch_id in ids]

    def is_to_be_asked(self, asked: Asked | None = None) -> bool:
        """True where something would be lost, or is cut: what attempts hold of it is named then.

        Once they were `asked`, only where more would be lost by now, and they may hold it.
        """
        if asked is None:
            return bool(self.batches or self.changes.lost or self.changes.stopped)
        accounts = self.accounts.generations
        return any(asked.has_missed(accounts[each.partition.partition], each) for each in self.lost)

    @property
    def lost(self) -> list[OffsetRange]:
        """The offsets that would be lost."""
        cut = [each.offsets for each in self.changes.cuts if each.becomes is RangeState.LOST]
        return [*(each.offsets for each in self.changes.lost), *cut]

    def at_stake(self, asked: Asked | None) -> list[Unasked]:
        """The directories that such a batch waits for, or that may hold what would be lost."""
        generations, ids = self.accounts.generations, {each.plan.batch_id for each in self.batches}
        lost = [(generations[each.partition.partition].topic_id, each) for each in self.lost]
        return [
            each
            for each in (asked.unasked if asked else ())
            if each.batch_ids & ids or any(each.files.may_hold(*one) for one in lost)
        ]


def danger_in(services: Services, accounts: Accounts, seen: Observation) -> InDanger:
    """What this look would end, if no attempt held anything."""
    changes = log_changes(accounts, seen)
    apart = taken_apart(accounts, seen.snapshot, services.isolation, changes.cuts, None)
    return InDanger(accounts, seen, changes, apart.batches | to_be_asked(accounts))


@dataclass(frozen=True, slots=True)
class Answers:
    """What asking the attempts has come to."""

    committed: Sequence[BatchPlan]
    asked: Asked
    """What the attempts of all other batches say that could be asked."""


def ask_attempts(
    services: Services, danger: InDanger, owner: Owner, before: Asked | None
) -> Answers:
    """Commit what attempts hold of what would be lost, whatever batch they are of.

    What can't be asked now is named, and is not lost.

    `before` is what they answered to an earlier look of the same plan.
    Raises LedgerBehind when the storage holds what would be lost, in batches that this ledger has
    never heard of: it was restored, and a rebuild may enter them.
    """
    unanswered = Unanswered(services)
    _require_none_forgotten(services, danger, unanswered)
    committed: list[BatchPlan] = []
    tokens: dict[BatchId, FencingToken] = {}
    busy: list[OffsetRange] = []
    again = _claimed_again(services, danger, tokens, busy, unanswered, owner)
    for status in chain(danger.batches, again):
        with _asking(services, status.plan):
            now = _asked(services, status, danger, unanswered, owner)
            if now.state.is_committed:
                committed.append(now.plan)
                unanswered.pass_over(now.plan.batch_id)
            elif not unanswered.is_about(now.plan.batch_id):
                tokens[now.plan.batch_id] = now.newest_token
    offsets = (*(before.offsets if before else ()), *danger.lost)
    kept = kept_files(services, unanswered)
    return Answers(committed, Asked(tokens, kept, tuple(busy), offsets, unanswered.unasked))


def _asked(
    services: Services,
    status: BatchStatus,
    danger: InDanger,
    unanswered: Unanswered,
    owner: Owner,
) -> BatchStatus:
    """The batch as it stands when its attempts were asked: committed, if one of them may be."""
    for offer in offers_of(services, status, danger.seen.snapshot, unanswered):
        if offer.lost and _may_be_elsewhere(services, status.plan, offer.lost, unanswered):
            continue
        with unanswered.committing(offer.staging):
            if _is_committed(services, status, offer, danger, owner):
                log.warning(
                    "Batch %s: what %s holds can't be read again, and is committed.",
                    status.plan.batch_id,
                    offer.staging,
                )
                break
    return services.ledger.batch(status.plan.batch_id)


def _may_be_elsewhere(
    services: Services, plan: BatchPlan, lost: Sequence[OffsetRange], unanswered: Unanswered
) -> bool:
    """True where a directory that could not be asked may hold what files would give up."""
    kept_files(services, unanswered)
    return any(
        each.files.may_hold(plan.topic_id, one) for each in unanswered.unasked for one in lost
    )


def foresee(services: Services, danger: InDanger) -> Asked:
    """What asking would come to; changes nothing. Raises LedgerBehind as asking would."""
    unanswered = Unanswered.for_look(services)
    _require_none_forgotten(services, danger, unanswered)
    return _foreseen(services, danger, unanswered)


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What the next plan will find, as far as its attempts can be asked now."""

    findings: Sequence[Finding]
    unasked: Sequence[Unasked] = ()
    """The directories that could not be asked."""


def foreseen(services: Services, accounts: Accounts, seen: Observation) -> Foreseen:
    """What a look foresees; changes nothing.

    UNKNOWN instead of lost where the storage holds it in batches that this ledger never heard of,
    or may hold it where nobody could ask.
    """
    danger = danger_in(services, accounts, seen)
    unanswered = Unanswered.for_look(services)
    behind: LedgerBehind | None = None
    asked: Asked | None = None
    try:
        _require_none_forgotten(services, danger, unanswered)
    except LedgerBehind as error:
        log.warning("%s", error)
        behind = error
    if danger.is_to_be_asked():
        asked = _foreseen(services, danger, unanswered)
    changes = log_changes(accounts, seen, asked) if asked else danger.changes
    found = foreseen_findings(services.feed_name, accounts.generations, changes, seen)
    at_stake = danger.at_stake(asked)
    _ask_again(services, danger, unanswered)
    unasked = {each.path: each for each in (*at_stake, *unanswered.still_told)}
    return Foreseen(perhaps_landed(found) if behind else found, tuple(unasked.values()))


def _ask_again(services: Services, danger: InDanger, unanswered: Unanswered) -> None:
    """Asks what is told, also where nothing is in danger now: who did not ask ends nothing."""
    for batch_id in {batch_in(each) for each in unanswered.told}:
        with suppress(BatchUnknown):
            status = services.ledger.batch(batch_id)
            with _asking(services, status.plan):
                if offers_of(services, status, danger.seen.snapshot, unanswered):
                    unanswered.keep_told(batch_id)
    if unanswered.told:
        kept_files(services, unanswered)


def _foreseen(services: Services, danger: InDanger, unanswered: Unanswered) -> Asked:
    tokens: dict[BatchId, FencingToken] = {}
    for status in danger.batches:
        with _asking(services, status.plan):
            offers = offers_of(services, status, danger.seen.snapshot, unanswered)
            if any(
                not each.lost or not _may_be_elsewhere(services, status.plan, each.lost, unanswered)
                for each in offers
            ):
                if not unanswered.keep_told(status.plan.batch_id):
                    unanswered.pass_over(status.plan.batch_id)
            elif not unanswered.is_about(status.plan.batch_id):
                tokens[status.plan.batch_id] = status.newest_token
    may_land: list[OffsetRange] = []
    provable = _provable(services, danger, danger.accounts, tokens, may_land, unanswered)
    may_land += [offsets for free in provable for offsets in free.offsets]
    kept = kept_files(services, unanswered)
    return Asked(tokens, kept, tuple(may_land), unasked=unanswered.unasked)


def _claimed_again(
    services: Services,
    danger: InDanger,
    tokens: Mapping[BatchId, FencingToken],
    busy: list[OffsetRange],
    unanswered: Unanswered,
    owner: Owner,
) -> Iterator[BatchStatus]:
    """Batches of their own for files of batches that were taken apart, or given up.

    Begun when the batches in danger were asked: `tokens` are those that have nothing to commit.
    """
    accounts = services.ledger.accounts(services.feed_name)
    for free in _provable(services, danger, accounts, tokens, busy, unanswered):
        claimed: list[BatchStatus] = []
        with _or_busy(services, free, busy), unanswered.committing(free.staging):
            claimed += claimed_again(services, free, _standing(danger, tokens), owner)
        yield from claimed


def _provable(
    services: Services,
    danger: InDanger,
    accounts: Accounts,
    tokens: Mapping[BatchId, FencingToken],
    busy: list[OffsetRange],
    unanswered: Unanswered,
) -> list[FreeFiles]:
    """Files of such batches that can be committed; what another run is at goes to `busy`."""
    found: list[FreeFiles] = []
    standing = _standing(danger, tokens)
    for free in free_files(services, danger.lost, accounts, standing, unanswered):
        with _or_busy(services, free, busy), unanswered.noting(free.staging):
            is_proven = proven_manifest(services, free.staging) is not None
            if is_proven or parts_of(services, free.plan, free.staging, danger.seen.snapshot):
                found.append(free)
    return found


def _standing(danger: InDanger, tokens: Mapping[BatchId, FencingToken]) -> frozenset[BatchId]:
    """The batches in danger whose attempts could not be asked."""
    return frozenset(each.plan.batch_id for each in danger.batches) - tokens.keys()


@contextmanager
def _or_busy(services: Services, free: FreeFiles, busy: list[OffsetRange]) -> Iterator[None]:
    """Asks such files; where another run is at them, their offsets are noted."""
    is_asked = False
    with _asking(services, free.plan):
        yield
        is_asked = True
    if not is_asked:
        busy += free.offsets


@contextmanager
def _asking(services: Services, plan: BatchPlan) -> Iterator[None]:
    """Ends the asking of one batch at an error, and says so; raises what the ledger can't answer.

    Only files that can't be proven are an answer, and that is no error here.
    """
    try:
        with at(services, "ask", plan):
            yield
    except (LedgerUnavailable, CommitOutcomeUnknown):
        raise
    except IngestionError as error:
        log.warning(
            "Batch %s can't be asked now what it holds, and keeps its claims: %s",
            plan.batch_id,
            error,
        )


def _require_none_forgotten(services: Services, danger: InDanger, unanswered: Unanswered) -> None:
    lost = [each.offsets for each in danger.changes.lost]
    if not lost:
        return
    topic_ids = {each.topic_id for each in danger.accounts.generations.values()}
    forgotten = [
        each.directory
        for each in staged_batches(services, feed_roots(services), unanswered)
        if each.plan.topic_id in topic_ids
        and any(
            planned.offsets.intersection(offsets)
            for planned in each.plan.ranges
            for offsets in lost
        )
    ]
    if forgotten:
        raise LedgerBehind(services.feed_name, forgotten)


def _is_committed(
    services: Services, status: BatchStatus, offer: Offer, danger: InDanger, owner: Owner
) -> bool:
    """True when the ledger has the offer, False when its files prove too little; else raises."""
    try:
        attempt = take_over(services, status.plan, offer.staging.attempt_id, owner)
        if attempt is None:
            return False
        if offer.manifest:
            commit_proven(services, attempt, offer.manifest)
        else:
            _give_up(services, status.plan, attempt, offer.parts, danger, owner)
            verify_and_commit(services, attempt, landed_by=offer.staging.attempt_id)
    except (VerificationFailed, ManifestMismatch, FileMissing, SourceChanged) as error:
        log.warning("%s", error)
        return False
    return True


def _give_up(
    services: Services,
    plan: BatchPlan,
    attempt: Attempt,
    parts: Sequence[ProvablePart],
    danger: InDanger,
    owner: Owner,
) -> None:
    """The ends of claims that nobody can prove are lost; the attempt's token keeps others away."""
    changes = danger.changes
    codes = {each.generation_id: each.code for each in changes.lost}
    codes |= {each.generation_id: each.code for each in changes.cuts}
    # Another attempt may have read what this one has not.
    gone = [lost for each in parts for lost in each.lost]
    kept = kept_by_others(services, plan, attempt.attempt_id, gone) if gone else ()
    cuts = tuple(
        CutClaim(
            attempt.batch_id,
            each.planned.generation_id,
            lost,
            RangeState.LOST,
            codes.get(each.planned.generation_id, FindingCode.EXPIRED),
            kept=places_for(kept, plan.topic_id, lost),
        )
        for each in parts
        for lost in each.lost
    )
    if not cuts:
        return
    wanted, generations = LogChanges(cuts=cuts), danger.accounts.generations
    with services.ledger.planning(services.feed_name, services.topic) as session:
        made = replace(wanted, cuts=session.apply(wanted, None).changes.cuts)
        session.record_findings(change_findings(services.feed_name, generations, made, danger.seen))
        # A plan of its own, for what is found here is this run's news, whatever follows.
        session.freeze(None, (), (), owner=owner, lease=services.lease)
