"""C3, rows differ: what is compared again, and which findings that takes back.

What was not compared, on either side, proves nothing and ends nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.replacing import spans_of
from tallystick.domain.batches.standing_batch import StandingBatch
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition, offset_range
from tallystick.domain.rules.c3_evidence import ComparedSlice, slices_in, was_compared
from tallystick.domain.rules.c3_rows_differ import C3, ComparedPlace, place_of
from tallystick.domain.rules.evidence import batch_in
from tallystick.domain.rules.findings import Finding


def ranges_to_read(
    batch: StandingBatch,
    generations: Mapping[int, GenerationAccount],
    log_starts: Mapping[int, int],
) -> tuple[OffsetRange, ...]:
    """The batch's offsets that the broker still has, and that its log is known to be the one of.

    A log that was cut, or has another life, holds other records by right. What a repair has taken
    over is compared with the repair.
    """
    plan = batch.manifest.plan
    if len(batch.standing) == len(batch.manifest.files):
        whole = [each.planned.offsets for each in batch.manifest.ranges]
    else:
        spans = spans_of(batch.manifest)
        whole = [each for name in sorted(batch.standing) for each in spans.get(name, ())]
    found = []
    for each in whole:
        number = each.partition.partition
        account, start = generations.get(number), log_starts.get(number)
        if account is None or start is None:
            continue
        is_its_log = (account.cluster_id, account.topic_id, account.ordinal) == (
            plan.cluster_id,
            plan.topic_id,
            plan.ordinal,
        )
        left = each.clipped(start, each.until_offset)
        if is_its_log and account.state is GenerationState.OPEN and left:
            found.append(left)
    return tuple(found)


def slices_to_read_again(
    plan: BatchPlan, standing: Iterable[Finding], ranges: Sequence[OffsetRange]
) -> tuple[OffsetRange, ...]:
    """Where standing findings have seen differences at the batch's offsets, as far as it can be
    read: in the batch, or in one whose offsets it lands again.
    """
    again = []
    for each in standing:
        if each.partition is None or each.rule != C3 or each.generation != plan.ordinal:
            continue
        partition = TopicPartition(plan.topic, each.partition)
        for run in slices_in(each):
            offsets = offset_range(partition, *run)
            again += [part for whole in ranges if offsets and (part := whole.intersection(offsets))]
    return tuple(again)


def compared_again(
    batch_id: BatchId, standing: Iterable[Finding], compared: Sequence[ComparedSlice]
) -> frozenset[ComparedPlace]:
    """The places of standing findings whose slices were all compared again, and are equal."""
    differing = _differing(compared)
    return frozenset(
        place_of(each)
        for each in standing
        if _is_about(batch_id, each)
        and _is_compared(each, compared)
        and not _differs(each, differing)
    )


def _is_compared(finding: Finding, compared: Sequence[ComparedSlice]) -> bool:
    """True if all slices in which it has seen differences are named, and were compared by both."""
    number, runs = finding.partition, slices_in(finding)
    return (
        number is not None
        and bool(runs)
        and not finding.evidence.get("more_slices")
        and all(was_compared(number, run, compared) for run in runs)
    )


def _differing(compared: Sequence[ComparedSlice]) -> frozenset[tuple[int, int]]:
    """By partition and offset."""
    return frozenset(
        (each.read.asked.partition.partition, difference.offset)
        for each in compared
        for difference in each.differences
    )


def _differs(finding: Finding, differing: Collection[tuple[int, int]]) -> bool:
    return any(
        number == finding.partition and run[0] <= offset < run[1]
        for number, offset in differing
        for run in slices_in(finding)
    )


def _is_about(batch_id: BatchId, finding: Finding) -> bool:
    return finding.rule == C3 and batch_in(finding.evidence) == batch_id
