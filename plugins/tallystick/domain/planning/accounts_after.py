"""What the ledger holds once changes are applied.

The ledger performs the same changes; tests/contract holds the two together. Witnesses of logs that
it knows are left out: only a look that the ledger keeps hands them over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tallystick.domain.batches.batch import BatchStatus, PlannedRange
from tallystick.domain.batches.states import RangeState
from tallystick.domain.identities import BatchId, GenerationId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.offsets.ranges import OffsetRange, subtract
from tallystick.domain.planning.log_changes import Accounts, CutClaim, LogChanges


def accounts_after(accounts: Accounts, changes: LogChanges) -> Accounts:
    """The accounts as the ledger would have them after these changes.

    An opened generation has no id yet: it is given the negative of its place in the list.
    """
    before = _claims(accounts.unfinished)
    unfinished = _unfinished(accounts, changes)
    after, of_log = _claims(unfinished), _by_log(changes)
    generations = dict(accounts.generations)
    for partition, account in accounts.generations.items():
        own = account.generation_id
        if own in of_log or before.get(own) != after.get(own):
            tail = _tail_of(account, before.get(own, ()))
            generations[partition] = _changed(account, of_log[own], after.get(own, ()), tail)
    for number, opened in enumerate(changes.opened, start=1):
        generations[opened.partition.partition] = opened.account(GenerationId(-number))
    return Accounts(generations, unfinished, _retired(accounts, generations))


@dataclass(frozen=True, slots=True)
class _Tail:
    """What lies beyond a frontier, but for claims."""

    settled: frozenset[OffsetRange]
    """Committed or lost."""
    unreadable: frozenset[OffsetRange]


def _tail_of(account: GenerationAccount, claims: Collection[OffsetRange]) -> _Tail:
    settled = frozenset(account.beyond).difference(claims, account.unreadable)
    return _Tail(settled, frozenset(account.unreadable))


def _claims(unfinished: Collection[BatchStatus]) -> Mapping[GenerationId, set[OffsetRange]]:
    """By generation, what stands in its account because a batch claims it."""
    found: dict[GenerationId, set[OffsetRange]] = {}
    for batch in unfinished:
        for each in () if batch.plan.is_repair else batch.plan.ranges:
            found.setdefault(each.generation_id, set()).add(each.offsets)
    return found


@dataclass(slots=True)
class _OfLog:
    """What changes in one generation."""

    cuts: list[CutClaim] = field(default_factory=list)
    lost: list[OffsetRange] = field(default_factory=list)
    due_again: list[OffsetRange] = field(default_factory=list)
    state: GenerationState | None = None
    """None where it stays as it was."""


def _by_log(changes: LogChanges) -> Mapping[GenerationId, _OfLog]:
    """The changes of each generation; another one has none."""
    found: defaultdict[GenerationId, _OfLog] = defaultdict(_OfLog)
    for cut in changes.cuts:
        found[cut.generation_id].cuts.append(cut)
    for lost in changes.lost:
        found[lost.generation_id].lost.append(lost.offsets)
    for planned in changes.due_again:
        found[planned.generation_id].due_again.append(planned.offsets)
    for ended in changes.stopped:
        found[ended.generation_id].state = GenerationState.STOPPED
    for ended in changes.closed:
        found[ended.generation_id].state = GenerationState.CLOSED
    return found


def _unfinished(accounts: Accounts, changes: LogChanges) -> list[BatchStatus]:
    """The batches that are not abandoned, with the claims that are left of them."""
    closed = {each.generation_id for each in changes.closed}
    cuts: defaultdict[tuple[BatchId, GenerationId], list[OffsetRange]] = defaultdict(list)
    for each in changes.cuts:
        cuts[each.batch_id, each.generation_id].append(each.offsets)
    left = (_after_cuts(each, cuts, closed) for each in accounts.unfinished)
    return [each for each in left if each is not None]


def _after_cuts(
    batch: BatchStatus,
    cuts: Mapping[tuple[BatchId, GenerationId], Sequence[OffsetRange]],
    closed: Collection[GenerationId],
) -> BatchStatus | None:
    """The batch with the claims that are left of it; None when it is abandoned."""
    plan = batch.plan
    if any(each.generation_id in closed for each in plan.ranges):
        return None
    if plan.is_give_up:
        return batch if batch.is_held else None
    left = tuple(
        PlannedRange(each.generation_id, offsets)
        for each in plan.ranges
        for offsets in subtract(each.offsets, cuts.get((plan.batch_id, each.generation_id), ()))
    )
    return replace(batch, plan=replace(plan, ranges=left)) if left else None


def _changed(
    account: GenerationAccount, changes: _OfLog, claims: Collection[OffsetRange], tail: _Tail
) -> GenerationAccount:
    again = [*changes.lost, *changes.due_again]
    unreadable = {
        each for each in tail.unreadable if not any(one.intersection(each) == each for one in again)
    }
    unreadable |= {each.offsets for each in changes.cuts if each.becomes is RangeState.UNREADABLE}
    settled = {each.offsets for each in changes.cuts if each.becomes is RangeState.LOST}
    after = account.with_tail(claims, tail.settled | settled | {*changes.lost}, unreadable)
    return replace(after, state=changes.state or account.state)


def _retired(accounts: Accounts, after: Mapping[int, GenerationAccount]) -> frozenset[str]:
    living = {each.topic_id for each in after.values() if each.state is not GenerationState.CLOSED}
    known = {each.topic_id for each in accounts.generations.values()}
    return (accounts.retired_topic_ids | known) - living
