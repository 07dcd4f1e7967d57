"""May the offsets that a dead attempt has read be claimed again, for its files to be committed?

A batch that was taken apart, or given up, claims them no more, so none of its attempts may commit.
A batch of its own may, if nobody has landed any of these offsets, and nobody is about to.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tallystick.domain.batches.batch import BatchPlan, PlannedRange
from tallystick.domain.batches.states import RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.log_changes import Accounts, CutClaim


@dataclass(frozen=True, slots=True)
class ClaimAgain:
    """What a batch for an attempt's files claims, and what dead batches release for it."""

    ranges: tuple[PlannedRange, ...]
    cuts: tuple[CutClaim, ...]


def claim_again(
    old: BatchPlan,
    offsets: Sequence[OffsetRange],
    accounts: Accounts,
    standing: Collection[BatchId],
) -> ClaimAgain | None:
    """The claim for what an attempt of the old batch has read; None unless all of it is free.

    `standing` are batches whose claims stay, for their own attempts could not be asked.
    """
    ranges: list[PlannedRange] = []
    cuts: list[CutClaim] = []
    for each in offsets:
        account = accounts.generations.get(each.partition.partition)
        if (
            account is None
            or not _is_open_log_of(account, old)
            or each.from_offset < account.frontier
        ):
            return None
        dead = _dead_claims(each, account, accounts, standing)
        cuts += dead
        held = [one for one in account.beyond if one.intersection(each)]
        if len(held) > len(dead):
            return None
        ranges.append(PlannedRange(account.generation_id, each))
    return ClaimAgain(tuple(ranges), tuple(cuts)) if ranges else None


def _is_open_log_of(account: GenerationAccount, old: BatchPlan) -> bool:
    identity = (account.cluster_id, account.topic_id, account.ordinal)
    is_same = identity == (old.cluster_id, old.topic_id, old.ordinal)
    return is_same and account.state is GenerationState.OPEN


def _dead_claims(
    offsets: OffsetRange,
    account: GenerationAccount,
    accounts: Accounts,
    standing: Collection[BatchId],
) -> list[CutClaim]:
    return [
        CutClaim(
            batch.plan.batch_id,
            account.generation_id,
            held,
            RangeState.RELEASED,
            FindingCode.SHORT_READ,
        )
        for batch in accounts.unfinished
        if not batch.is_held and batch.plan.batch_id not in standing
        if not batch.plan.is_repair
        for planned in batch.plan.ranges
        if planned.generation_id == account.generation_id
        if (held := planned.offsets.intersection(offsets))
    ]
