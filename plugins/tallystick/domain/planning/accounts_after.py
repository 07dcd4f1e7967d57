"""What the ledger holds once changes are applied, or a batch is committed: for who only looks.

`ledger.change_rows` performs the same changes; tests/contract holds the two together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from tallystick.domain.batches.batch import BatchPlan, BatchStatus, PlannedRange
from tallystick.domain.batches.states import RangeState
from tallystick.domain.identities import GenerationId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange, subtract
from tallystick.domain.planning.log_changes import Accounts, LogChanges


def accounts_after(
    accounts: Accounts, changes: LogChanges, snapshot: BrokerSnapshot | None = None
) -> Accounts:
    """The accounts as the ledger would have them after these changes, and after this look.

    An opened generation has no id yet: it is given the negative of its place in the list.
    """
    unfinished = [
        left for each in accounts.unfinished if (left := _after_cuts(each, changes)) is not None
    ]
    claims = _claims(unfinished)
    generations = {
        partition: _changed(account, changes, claims, _tail_of(account, accounts))
        for partition, account in accounts.generations.items()
    }
    for number, opened in enumerate(changes.opened, start=1):
        generations[opened.partition.partition] = opened.account(GenerationId(-number))
    if snapshot:
        generations = {each: _seen(of, snapshot) for each, of in generations.items()}
    return Accounts(generations, unfinished, _retired(accounts, generations))


def accounts_after_commit(accounts: Accounts, plan: BatchPlan) -> Accounts:
    """The accounts once the batch is committed with these ranges, which are all that it claims."""
    unfinished = [each for each in accounts.unfinished if each.plan.batch_id != plan.batch_id]
    claims = _claims(unfinished)
    generations = dict(accounts.generations)
    for planned in () if plan.is_repair else plan.ranges:
        account = accounts.generations[planned.offsets.partition.partition]
        until = max(account.read_until or 0, planned.offsets.until_offset)
        tail = _tail_of(account, accounts)
        generations[account.partition.partition] = replace(
            account.with_tail(
                claims.get(account.generation_id, ()),
                {*tail.settled, planned.offsets},
                tail.unreadable,
            ),
            read_until=until,
            last_seen_until=max(account.last_seen_until, until),
        )
    return Accounts(generations, unfinished, accounts.retired_topic_ids)


@dataclass(frozen=True, slots=True)
class _Tail:
    """What lies beyond a frontier, but for claims."""

    settled: frozenset[OffsetRange]
    """Committed or lost."""
    unreadable: frozenset[OffsetRange]


def _tail_of(account: GenerationAccount, accounts: Accounts) -> _Tail:
    claims = _claims(accounts.unfinished).get(account.generation_id, ())
    settled = frozenset(account.beyond).difference(claims, account.unreadable)
    return _Tail(settled, frozenset(account.unreadable))


def _claims(unfinished: Collection[BatchStatus]) -> Mapping[GenerationId, set[OffsetRange]]:
    """By generation, what stands in its account because a batch claims it."""
    found: dict[GenerationId, set[OffsetRange]] = {}
    for batch in unfinished:
        for each in () if batch.plan.is_repair else batch.plan.ranges:
            found.setdefault(each.generation_id, set()).add(each.offsets)
    return found


def _after_cuts(batch: BatchStatus, changes: LogChanges) -> BatchStatus | None:
    """The batch with the claims that are left of it; None when it is abandoned."""
    plan = batch.plan
    closed = {each.generation_id for each in changes.closed}
    if any(each.generation_id in closed for each in plan.ranges):
        return None
    if plan.is_give_up:
        return batch if batch.lease_seconds_left > 0 else None
    cuts = [each for each in changes.cuts if each.batch_id == plan.batch_id]
    left = tuple(
        PlannedRange(each.generation_id, offsets)
        for each in plan.ranges
        for offsets in subtract(
            each.offsets, [cut.offsets for cut in cuts if cut.generation_id == each.generation_id]
        )
    )
    return replace(batch, plan=replace(plan, ranges=left)) if left else None


def _changed(
    account: GenerationAccount,
    changes: LogChanges,
    claims: Mapping[GenerationId, set[OffsetRange]],
    tail: _Tail,
) -> GenerationAccount:
    own = account.generation_id
    cuts = [each for each in changes.cuts if each.generation_id == own]
    lost = [each.offsets for each in changes.lost if each.generation_id == own]
    again = [*lost, *(each.offsets for each in changes.due_again if each.generation_id == own)]
    unreadable = {
        each for each in tail.unreadable if not any(one.intersection(each) == each for one in again)
    }
    unreadable |= {each.offsets for each in cuts if each.becomes is RangeState.UNREADABLE}
    settled = {each.offsets for each in cuts if each.becomes is RangeState.LOST}
    after = account.with_tail(claims.get(own, ()), tail.settled | settled | {*lost}, unreadable)
    return replace(after, state=_state_of(account, changes))


def _state_of(account: GenerationAccount, changes: LogChanges) -> GenerationState:
    if any(each.generation_id == account.generation_id for each in changes.stopped):
        return GenerationState.STOPPED
    if any(each.generation_id == account.generation_id for each in changes.closed):
        return GenerationState.CLOSED
    return account.state


def _seen(account: GenerationAccount, snapshot: BrokerSnapshot) -> GenerationAccount:
    """The account with its witness handed over, where the snapshot shows its very log."""
    bounds = snapshot.partitions.get(account.partition.partition)
    is_open = account.state is GenerationState.OPEN
    if bounds is None or not is_open or not snapshot.is_of(account):
        return account
    until = max(account.last_seen_until, bounds.high_watermark)
    return replace(account, last_seen_until=until, seen_epoch=bounds.leader_epoch)


def _retired(accounts: Accounts, after: Mapping[int, GenerationAccount]) -> frozenset[str]:
    living = {each.topic_id for each in after.values() if each.state is not GenerationState.CLOSED}
    known = {each.topic_id for each in accounts.generations.values()}
    return (accounts.retired_topic_ids | known) - living
