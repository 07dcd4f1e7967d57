"""C3, rows differ: what is compared again, and which findings that takes back.

1. What was not compared, on either side, proves nothing and ends nothing.
2. Files that were refused stay refused until the same slices are compared again, and are equal. So
   does the finding stand: that others have landed the offsets proves nothing of what they landed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.replacing import spans_of
from tallystick.domain.batches.standing_batch import StandingBatch
from tallystick.domain.identities import AttemptId, BatchId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition, offset_range
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.c3_evidence import ComparedSlice, attempts_in, slices_in, was_compared
from tallystick.domain.rules.c3_rows_differ import (
    C3,
    ComparedPlace,
    is_refusal,
    place_of,
)
from tallystick.domain.rules.evidence import batch_in
from tallystick.domain.rules.findings import Finding
from tallystick.domain.verdicts import Verdict


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
    """Where standing findings have seen differences, about the batch or about attempts at its
    offsets, as far as it can be read.
    """
    found = list(standing)
    about = [each for each in found if _is_about(plan.batch_id, each)]
    return slices_of(plan, [*about, *refusals_in(plan, found)], ranges)


def slices_of(
    plan: BatchPlan, findings: Iterable[Finding], ranges: Sequence[OffsetRange]
) -> tuple[OffsetRange, ...]:
    """Where these findings have seen differences, within these ranges."""
    again = []
    for each in findings:
        if each.partition is None:
            continue
        partition = TopicPartition(plan.topic, each.partition)
        for run in slices_in(each):
            offsets = offset_range(partition, *run)
            again += [part for whole in ranges if offsets and (part := whole.intersection(offsets))]
    return tuple(again)


def refusals_in(plan: BatchPlan, standing: Iterable[Finding]) -> list[Finding]:
    """Standing findings about attempts, of whatever batch, that differ at offsets of this one."""
    partitions = {each.offsets.partition.partition for each in plan.ranges}
    return [
        each
        for each in standing
        if is_refusal(each) and each.partition in partitions and each.generation == plan.ordinal
    ]


def refused_before(
    batch_id: BatchId, attempts: Collection[AttemptId], standing: Iterable[Finding]
) -> tuple[Finding, ...]:
    """The standing findings for which these attempts, or the files that they hold, were refused."""
    return tuple(
        each
        for each in standing
        if is_refusal(each)
        and batch_in(each.evidence) == batch_id
        and not set(attempts).isdisjoint(attempts_in(each))
    )


def is_lost_whole(
    finding: Finding, lost: Iterable[tuple[GenerationAccount, OffsetRange, str]]
) -> bool:
    """True when all offsets at which an attempt differs are lost: nobody has landed them."""
    number, runs = finding.partition, slices_in(finding)
    gone = OffsetRuns.of(
        (offsets.from_offset, offsets.until_offset)
        for account, offsets, _ in lost
        if (account.partition.partition, account.ordinal) == (number, finding.generation)
    )
    return bool(runs) and not OffsetRuns.of(runs).difference(gone)


def refusals_taken_back(
    standing: Iterable[Finding], compared: Sequence[ComparedSlice]
) -> frozenset[ComparedPlace]:
    """The places of findings about attempts whose slices were all compared, and are equal."""
    return _equal_again(filter(is_refusal, standing), compared)


def compared_again(
    batch_id: BatchId, standing: Iterable[Finding], compared: Sequence[ComparedSlice]
) -> frozenset[ComparedPlace]:
    """The places of standing findings whose slices were all compared again, and are equal."""
    about = (each for each in standing if _is_about(batch_id, each))
    return _equal_again(about, compared)


def _equal_again(
    standing: Iterable[Finding], compared: Sequence[ComparedSlice]
) -> frozenset[ComparedPlace]:
    differing = _differing(compared)
    return frozenset(
        place_of(each)
        for each in standing
        if is_compared(each, compared) and not _differs(each, differing)
    )


def is_compared(finding: Finding, compared: Sequence[ComparedSlice]) -> bool:
    """True if all slices in which the finding has seen differences were compared, on both sides."""
    number, runs = finding.partition, _all_slices_in(finding)
    return (
        number is not None
        and bool(runs)
        and all(was_compared(number, run, compared) for run in runs)
    )


def may_be_compared(finding: Finding, ranges: Iterable[OffsetRange]) -> bool:
    """True if every slice in which the finding has seen differences lies within these ranges, which
    can still be read; else nothing can take the finding back.
    """
    readable = OffsetRuns.of(
        (each.from_offset, each.until_offset)
        for each in ranges
        if each.partition.partition == finding.partition
    )
    runs = _all_slices_in(finding)
    return bool(runs) and not OffsetRuns.of(runs).difference(readable)


def _all_slices_in(finding: Finding) -> Sequence[tuple[int, int]]:
    """The slices [from, until) in which it has seen differences; none where not all are named."""
    return () if finding.evidence.get("more_slices") else slices_in(finding)


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
    is_committed = finding.verdict is Verdict.PROVEN_LOSS
    is_ours = batch_in(finding.evidence) == batch_id
    return finding.rule == C3 and is_committed and is_ours
