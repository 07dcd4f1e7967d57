"""A plan's batches into the ledger and out of it: entered, claimed, adopted, read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.batches.states import BatchState
from tallystick.domain.deciding.plan import FrozenPlan
from tallystick.domain.identities import BatchId, FeedName, FencingToken, Owner, PlanId
from tallystick.domain.window import Window
from tallystick.errors import LedgerRefused
from tallystick.ledger.connection import Transaction
from tallystick.ledger.rows import batch_statuses, offset_columns


def frozen_plan(transaction: Transaction, plan_id: int, planned_at: datetime) -> FrozenPlan:
    """The plan as it stands now: its own batches and the adopted ones, each in its order."""
    rows = transaction.rows("plan_batches", plan_id=plan_id)
    own: list[BatchStatus] = []
    adopted: list[BatchStatus] = []
    for row, status in zip(rows, batch_statuses(transaction, rows), strict=True):
        (adopted if row.is_adopted else own).append(status)
    return FrozenPlan(PlanId(plan_id), planned_at, own, adopted)


def made_plan(
    transaction: Transaction,
    feed: FeedName,
    plan_id: int,
    planned_at: datetime,
    window: Window | None,
    batches: Sequence[BatchPlan],
    adopted: Sequence[BatchId],
    *,
    owner: Owner,
    lease: timedelta,
) -> FrozenPlan:
    """Enter the batches, claim their ranges, take over the adopted ones; raises ClaimConflict."""
    foreign = [
        each.batch_id
        for each in batches
        if each.feed != feed or not _is_within(each.window, window)
    ]
    if foreign:
        raise LedgerRefused("make_batches", f"{foreign} belong to another feed or a later window")
    if batches:
        _enter(transaction, feed, plan_id, batches, owner, lease)
        _claim(transaction, feed, batches)
        _replace(transaction, batches)
    taken = _adopted(transaction, feed, adopted, owner, lease)
    own = [each.batch_id for each in batches]
    for batch_ids, is_adopted in ((own, False), (taken, True)):
        if batch_ids:
            transaction.change(
                "join_batches", plan_id=plan_id, batch_ids=batch_ids, is_adopted=is_adopted
            )
    if taken:
        return frozen_plan(transaction, plan_id, planned_at)
    new = [_new(each, owner, lease) for each in batches]
    return FrozenPlan(PlanId(plan_id), planned_at, new, [])


def _new(plan: BatchPlan, owner: Owner, lease: timedelta) -> BatchStatus:
    """A batch as it stands once it is entered."""
    seconds = lease.total_seconds()
    return BatchStatus(
        plan=replace(plan, ranges=tuple(sorted(plan.ranges, key=lambda each: each.offsets))),
        state=BatchState.PLANNED,
        newest_token=FencingToken(0),
        applications=0,
        committed_by=None,
        lease_seconds_left=max(0.0, seconds),
        holder=owner if seconds > 0 else None,
    )


def _is_within(own: Window | None, window: Window | None) -> bool:
    """True for a window that ends no later than the plan's, and where neither has one."""
    if own is None or window is None:
        return own is window
    return own.until_instant <= window.until_instant


def _enter(
    transaction: Transaction,
    feed: FeedName,
    plan_id: int,
    batches: Sequence[BatchPlan],
    owner: Owner,
    lease: timedelta,
) -> None:
    transaction.change(
        "make_batches",
        feed=feed,
        plan_id=plan_id,
        owner=owner,
        lease=lease,
        batch_ids=[each.batch_id for each in batches],
        roots=[each.root for each in batches],
        topics=[each.topic for each in batches],
        cluster_ids=[each.cluster_id for each in batches],
        topic_ids=[each.topic_id for each in batches],
        ordinals=[each.ordinal for each in batches],
        labels=[each.label for each in batches],
        windows_from=[each.window and each.window.from_instant for each in batches],
        windows_until=[each.window and each.window.until_instant for each in batches],
    )


def _claim(transaction: Transaction, feed: FeedName, batches: Sequence[BatchPlan]) -> None:
    claims = [(batch.batch_id, each) for batch in batches for each in batch.ranges]
    if not claims:
        return
    repairs = {each.batch_id for each in batches if each.is_repair}
    transaction.partitions = {each.generation_id: str(each.offsets.partition) for _, each in claims}
    entered = transaction.change(
        "claim_ranges",
        feed=feed,
        batch_ids=[batch_id for batch_id, _ in claims],
        **offset_columns([(each.generation_id, each.offsets) for _, each in claims]),
        partitions=[each.offsets.partition.partition for _, each in claims],
        replaces=[batch_id in repairs for batch_id, _ in claims],
    )
    if entered != len(claims):
        missing = len(claims) - entered
        raise LedgerRefused("claim_ranges", f"{missing} ranges name a foreign generation")


def _replace(transaction: Transaction, batches: Sequence[BatchPlan]) -> None:
    replaced = [(batch.batch_id, each) for batch in batches for each in batch.replaces]
    if not replaced:
        return
    entered = transaction.change(
        "replace_files",
        batch_ids=[batch_id for batch_id, _ in replaced],
        old_batch_ids=[each.batch_id for _, each in replaced],
        names=[each.name for _, each in replaced],
    )
    if entered != len(replaced):
        gone = len(replaced) - entered
        raise LedgerRefused("replace_files", f"{gone} of the files are replaced already")


def _adopted(
    transaction: Transaction,
    feed: FeedName,
    batch_ids: Sequence[BatchId],
    owner: Owner,
    lease: timedelta,
) -> list[BatchId]:
    """The batches that were really taken over, in the order they were given."""
    if not batch_ids:
        return []
    rows = transaction.rows(
        "adopt_batches", feed=feed, owner=owner, lease=lease, batch_ids=list(batch_ids)
    )
    taken = {row.batch_id for row in rows}
    return [each for each in batch_ids if each in taken]
