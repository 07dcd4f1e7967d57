"""What becomes of batches that fail again and again: taken apart, and searched for what is
to blame, so that what is sick fails alone.

A batch is landed and committed as a whole: a partition that can't be read or proven would keep up
to hundreds of healthy ones from landing, until retention takes their records.

1. A batch that was tried twice and is held by nobody is halved, until the sick partition has a
   batch of its own.
2. A repair is given up instead: it lands nothing that is not committed already.
3. A try that failed before Spark had begun to read does not count, nor one whose Spark read nothing
   anywhere: it is no partition's fault.
4. A partition that can't be read now, for want of a leader or behind a high watermark that lags,
   keeps its claim: an attempt may hold it. The others of its batch are released, and landed without
   it.
5. A batch is halved, and a repair given up, only while the log has all that it claims: then
   nothing that an attempt holds is the only copy. One is parted for want of a leader only if its
   attempts hold nothing, for then nobody can tell what the log has.
6. Where it is Spark that fails or hangs, single offsets may be to blame: they are looked for when a
   batch fails for the second time, or at once where it holds one offset only. None is set aside
   while an earlier attempt holds what can be committed, or can't be asked.
7. A record behind the batch may be to blame as well, for Spark polls beyond the end: a second try
   does not.
8. A batch of a root that the feed's file names no more is released, if no attempt of it holds
   anything: nothing would ever be landed below a root that was a mistake. A repair lies beside
   what it mends.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tallystick.domain.attempts.staged import Staged
from tallystick.domain.batches.batch import BatchPlan, BatchStatus, PlannedRange
from tallystick.domain.batches.states import Isolation, RangeState
from tallystick.domain.finding_codes import FindingCode
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange, subtract
from tallystick.domain.planning.log_changes import Accounts, CutClaim

_TRIES_TOGETHER: Final = 2
_NOTHING_STAGED: Final = Staged()


@dataclass(frozen=True, slots=True)
class TakenApart:
    """Claims to release, and which partitions must not share a batch in the next plan."""

    cuts: Sequence[CutClaim] = ()
    groups: Mapping[int, int] = field(default_factory=dict)
    """By partition: a number; partitions with different numbers go into different batches."""

    @property
    def batches(self) -> frozenset[BatchId]:
        """Those that lose claims."""
        return frozenset(each.batch_id for each in self.cuts)


def taken_apart(
    accounts: Accounts,
    snapshot: BrokerSnapshot,
    isolation: Isolation,
    gone: Sequence[CutClaim],
    staged: Staged = _NOTHING_STAGED,
    root: str | None = None,
) -> TakenApart:
    """What to take apart; `root` is the one that the feed's file names.

    `gone` are the claims that end because of what the log shows, if no attempt holds anything: a
    batch with one of these is left whole.
    """
    busy = {each.batch_id for each in gone}
    cuts: list[CutClaim] = []
    groups: dict[int, int] = {}
    for batch in accounts.unfinished:
        if batch.plan.batch_id in busy or staged.has_begun(batch):
            continue
        readable = [each for each in batch.plan.ranges if _is_readable(each, snapshot, isolation)]
        if len(readable) < len(batch.plan.ranges):
            if not batch.plan.is_repair and not staged.may_hold(batch):
                cuts += [
                    _released(batch.plan, each, FindingCode.COULD_NOT_TELL) for each in readable
                ]
            continue
        is_elsewhere = root is not None and batch.plan.root != root
        if is_elsewhere and not batch.plan.is_repair and not staged.may_hold(batch):
            cuts += [_released(batch.plan, each) for each in batch.plan.ranges]
            continue
        if not _fails_again_and_again(batch):
            continue
        cuts += [_released(batch.plan, each) for each in batch.plan.ranges]
        if batch.plan.is_repair:
            continue
        middle = len(batch.plan.ranges) // 2
        group = 1 + max(groups.values(), default=0)
        for number, planned in enumerate(batch.plan.ranges):
            groups[planned.offsets.partition.partition] = group + (number >= middle)
    return TakenApart(tuple(cuts), groups)


def failing_batches(accounts: Accounts) -> frozenset[BatchId]:
    """The batches that fail again and again, and that nobody holds.

    Of one that can't be parted the next attempt may set offsets aside.
    """
    return frozenset(
        each.plan.batch_id
        for each in accounts.unfinished
        if not each.is_held and each.applications >= _TRIES_TOGETHER
    )


def stops_at_ends(before: BatchStatus, logs: Sequence[GenerationAccount]) -> bool:
    """True when no poll may go beyond the ranges of the batch: Spark has failed on it `before`,
    or can't read a record that lies behind one of them in these logs. No repair may: a record
    behind it may have been given up as unreadable long ago.
    """
    ends = {each.generation_id: each.offsets.until_offset for each in before.plan.ranges}
    return (
        before.plan.is_repair
        or before.applications > 0
        or any(
            each.from_offset >= ends[log.generation_id]
            for log in logs
            if log.generation_id in ends
            for each in log.unreadable
        )
    )


def is_search_due(before: BatchStatus) -> bool:
    """True when another failure of Spark calls for a search; `before` the attempt that failed."""
    tries = before.applications + 1
    return not before.plan.is_repair and (tries >= _TRIES_TOGETHER or before.plan.span == 1)


def set_aside(plan: BatchPlan, unreadable: Collection[OffsetRange]) -> tuple[CutClaim, ...]:
    """The whole of a batch's claims: unreadable offsets are set aside, all others are due again."""
    cuts = []
    for planned in plan.ranges:
        here = [each for each in unreadable if each.partition == planned.offsets.partition]
        cuts += [
            replace(_released(plan, planned), offsets=each)
            for each in subtract(planned.offsets, here)
        ]
        cuts += [
            CutClaim(
                plan.batch_id,
                planned.generation_id,
                each,
                RangeState.UNREADABLE,
                FindingCode.UNREADABLE_RECORD,
            )
            for each in here
        ]
    return tuple(cuts)


def _released(
    plan: BatchPlan, planned: PlannedRange, code: FindingCode = FindingCode.SHORT_READ
) -> CutClaim:
    return CutClaim(
        plan.batch_id, planned.generation_id, planned.offsets, RangeState.RELEASED, code
    )


def _is_readable(planned: PlannedRange, snapshot: BrokerSnapshot, isolation: Isolation) -> bool:
    """True when its leader serves all of the range now, as far as bounds can tell."""
    bounds = snapshot.partitions.get(planned.offsets.partition.partition)
    return bounds is not None and planned.offsets.until_offset <= bounds.readable_until(isolation)


def _fails_again_and_again(batch: BatchStatus) -> bool:
    can_be_parted = batch.plan.is_repair or len(batch.plan.ranges) > 1
    return batch.applications >= _TRIES_TOGETHER and can_be_parted
