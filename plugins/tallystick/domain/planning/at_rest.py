"""Which logs a plan has nothing to decide about, so that it asks and judges the others only.

1. A log at rest is open and of the snapshot's life of the topic. It ends where it was seen to end,
   in the same leadership term, and all that may be read of it is landed or recorded as lost: no
   step of the plan rests on it, and its witness stays as it is.
2. No unfinished batch claims offsets of a log at rest, and none is to replace some.
3. What is decided without the logs at rest is what would be decided with them.
"""

from __future__ import annotations

from dataclasses import replace

from tallystick.domain.batches.states import Isolation
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.sameness import SAME
from tallystick.domain.logs.snapshot import BrokerSnapshot, PartitionBounds
from tallystick.domain.planning.log_changes import Accounts, Observation


def set_apart(
    accounts: Accounts, snapshot: BrokerSnapshot, isolation: Isolation
) -> tuple[Accounts, BrokerSnapshot]:
    """Both without the logs at rest, which the snapshot keeps as `at_rest`.

    One of them stays: it says that the feed is not new, and which life of the topic this is.
    """
    busy = {
        each.offsets.partition.partition
        for batch in accounts.unfinished
        for each in batch.plan.ranges
    }
    bounds = snapshot.partitions
    at_rest = {
        partition: bounds[partition]
        for partition, account in accounts.generations.items()
        if partition in bounds
        and _is_at_rest(account, snapshot, bounds[partition], isolation)
        and partition not in busy
    }
    if not at_rest:
        return accounts, snapshot
    del at_rest[max(at_rest, key=lambda each: accounts.generations[each].ordinal)]
    left = {p: each for p, each in accounts.generations.items() if p not in at_rest}
    shown = {p: each for p, each in bounds.items() if p not in at_rest}
    return (
        replace(accounts, generations=left),
        replace(snapshot, partitions=shown, at_rest=at_rest),
    )


def put_together(seen: Observation) -> Observation:
    """The observation with the logs at rest among all others."""
    snapshot = seen.snapshot
    whole = replace(snapshot, partitions=snapshot.all_partitions, at_rest={})
    return replace(
        seen, snapshot=whole, logs={**dict.fromkeys(snapshot.at_rest, SAME), **seen.logs}
    )


def _is_at_rest(
    account: GenerationAccount,
    snapshot: BrokerSnapshot,
    bounds: PartitionBounds,
    isolation: Isolation,
) -> bool:
    return (
        account.last_seen_until == bounds.high_watermark
        and account.frontier <= bounds.high_watermark
        and account.frontier >= bounds.readable_until(isolation)
        and account.frontier >= bounds.log_start_offset
        and not account.beyond
        and account.state is GenerationState.OPEN
        # Without epochs only the last landed record tells if the log is the same: it is asked.
        and account.seen_epoch is not None
        and account.seen_epoch == bounds.leader_epoch
        and snapshot.is_of(account)
    )
