"""What the broker still has of offsets that were landed: all, a part, nothing, or unknown."""

from __future__ import annotations

from collections.abc import Iterable

from tallystick.domain.batches.batch import BatchPlan, PlannedRange
from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition, offset_range
from tallystick.domain.repair.facts import RepairFacts


def still_readable(
    plan: BatchPlan, held: OffsetRange, facts: RepairFacts
) -> PlannedRange | str | None:
    """What the broker has of the offsets; a sentence where it can't be asked.

    None only where these offsets are gone for certain: with their log, or before its start.
    """
    snapshot = facts.snapshot
    if not snapshot.is_of(plan):
        return None
    partition, number = held.partition, held.partition.partition
    account = facts.accounts.generations.get(number)
    if account is None or account.ordinal != plan.ordinal:
        bounds = snapshot.partitions.get(number)
        if bounds and bounds.log_start_offset >= held.until_offset:
            return None
        return (
            f"generation {plan.ordinal} of {partition} is closed, for its log was cut: nobody can"
            " say that what it holds at these offsets now is what was landed, nor that it is gone."
        )
    if account.state is not GenerationState.OPEN:
        return f"{account.partition} is {account.state.value}: what its log holds now is not known."
    if number in facts.stopping:
        reason = facts.stopping[number]
        return f"the log of {account.partition} was cut: {reason}. The next run stops it."
    bounds = facts.snapshot.partitions.get(number)
    if bounds is None:
        return f"{account.partition} has no leader now; try again when it has one."
    if bounds.high_watermark < held.until_offset:
        return f"the log of {account.partition} ends at {bounds.high_watermark}, within the file."
    found = held.clipped(bounds.log_start_offset, held.until_offset)
    return PlannedRange(account.generation_id, found) if found else None


def gone_below(
    plan: BatchPlan, held: Iterable[FileSlice], readable: Iterable[PlannedRange]
) -> tuple[OffsetRange, ...]:
    """What the slices held before the readable offsets of their partition: logs go from below."""
    first = {each.offsets.partition.partition: each.offsets.from_offset for each in readable}
    return tuple(
        gone
        for each in held
        if (
            gone := offset_range(
                TopicPartition(plan.topic, each.partition),
                each.first_offset,
                first.get(each.partition, each.last_offset + 1),
            )
        )
    )
