"""Gives files of a dead attempt a batch of their own, where its old one claims them no more.

One that died in between leaves a batch that nobody holds: the next plan finds the files again by
their offsets.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.batches.paths import StagingPath
from tallystick.domain.identities import AttemptId, BatchId, Owner
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.free_offsets import ClaimAgain, claim_again
from tallystick.domain.planning.log_changes import Accounts, LogChanges
from tallystick.errors import AttemptNotAsked
from tallystick.workflows.services import Services
from tallystick.workflows.settling.offers import offers_of, parts_of
from tallystick.workflows.stored.asking_attempts import AskedAttempts
from tallystick.workflows.stored.staged_attempts import is_whole, proven_manifest
from tallystick.workflows.stored.staging import staged_files

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FreeFiles:
    """Complete files of a batch that claims their offsets no more."""

    staging: StagingPath
    old: BatchPlan
    """The batch as the ledger has it now."""
    offsets: tuple[OffsetRange, ...]
    """What its application was told to read."""
    claim: ClaimAgain

    @property
    def plan(self) -> BatchPlan:
        """The old batch, as it would claim them again."""
        return replace(self.old, ranges=self.claim.ranges)


@dataclass(frozen=True, slots=True)
class ClaimedAgain:
    """A new batch for such files."""

    status: BatchStatus
    staging: StagingPath
    """Where they lie."""


def free_files(
    services: Services,
    wanted: Sequence[OffsetRange],
    accounts: Accounts,
    standing: Collection[BatchId],
    asked: AskedAttempts,
) -> Iterator[FreeFiles]:
    """Files that may hold what would be lost, or what can't be landed.

    `standing` are batches whose claims stay, for their own attempts could not be asked: what these
    claim, or a living attempt, waits. What else can't be asked is noted.
    """
    staying = [
        planned.offsets
        for each in accounts.unfinished
        if each.is_held or each.plan.batch_id in standing
        for planned in each.plan.ranges
    ]
    for each in staged_files(services, asked):
        old, offsets = each.status.plan if each.status else None, each.offsets
        if old is None or not (
            offsets is None or any(one.intersection(gone) for one in offsets for gone in wanted)
        ):
            continue
        with asked.noting(each.staging):
            has_ended, claim = asked.has_ended(each.staging), None
            if offsets and not old.is_repair:
                if set(offsets) == {one.offsets for one in old.ranges}:
                    continue  # the batch itself is asked
                if any(one.intersection(other) for one in offsets for other in staying):
                    continue
                claim = claim_again(old, offsets, accounts, standing)
            if offsets and claim and is_whole(services, each.staging):
                yield FreeFiles(each.staging, old, offsets, claim)
            elif has_ended:
                asked.answered.add(str(each.staging))


def is_provable(services: Services, free: FreeFiles, snapshot: BrokerSnapshot) -> bool:
    """True for files that can be committed, once they are claimed again."""
    if proven_manifest(services, free.staging):
        return True
    return bool(parts_of(services, free.plan, free.staging, snapshot))


def may_be_committed(
    services: Services,
    plan: BatchPlan,
    snapshot: BrokerSnapshot,
    unreadable: Sequence[OffsetRange],
) -> bool:
    """True where a run can commit these offsets from what attempts hold, of this batch or another.

    Raises AttemptNotAsked for a directory that may hold them and can't be asked now.
    """
    asked = AskedAttempts(services)
    staged = asked.attempts_of(plan.root, plan.batch_id)
    if offers_of(services, plan, staged, snapshot, asked):
        return True
    accounts = services.ledger.accounts(services.feed_name)
    # As it stands for the next run: nobody holds this batch then.
    unfinished = [
        replace(each, lease_seconds_left=0.0) if each.plan.batch_id == plan.batch_id else each
        for each in accounts.unfinished
    ]
    for free in free_files(
        services, unreadable, replace(accounts, unfinished=unfinished), (), asked
    ):
        with asked.noting(free.staging):
            if is_provable(services, free, snapshot):
                return True
    for held in asked.notes.values():
        may_hold = any(held.files.may_hold(plan.topic_id, each) for each in unreadable)
        if held.batch_id == plan.batch_id or may_hold:
            raise AttemptNotAsked(held.path, held.reason, held.move)
    return False


def claimed_again(
    services: Services, free: FreeFiles, standing: Collection[BatchId], owner: Owner
) -> ClaimedAgain | None:
    """A new batch with these files in staging; None when the offsets are free no more."""
    with services.ledger.planning(services.feed_name, services.topic) as session:
        claim = claim_again(free.old, free.offsets, session.accounts(), standing)
        if claim is None:
            return None
        plan = replace(free.old, batch_id=BatchId(services.new_id()), ranges=claim.ranges)
        if session.apply(LogChanges(cuts=claim.cuts), None) is None:
            return None
        session.freeze(plan.window, [plan], (), owner=owner, lease=services.lease)
    staging = StagingPath.of(plan, AttemptId(services.new_id()))
    services.store.rename_exclusive(str(free.staging), str(staging))
    log.warning(
        "%s is no batch's any more: batch %s claims what it holds.", free.staging, plan.batch_id
    )
    return ClaimedAgain(services.ledger.batch(plan.batch_id), staging)
