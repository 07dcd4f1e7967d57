"""Level L4: landed rows against the records that another client reads from the broker (C3).

1. Before the commit a difference stops the batch: nothing is lost yet, and the finding is UNKNOWN.
2. A committed row that is not the log's record is a loss: what the log holds there is in no file.
3. What was not compared, on either side, proves nothing and ends nothing.
4. Files that were refused stay refused until the same slices are compared again, and are equal. So
   does the finding stand: that others have landed the offsets proves nothing of what they landed.
5. A finding about committed rows keeps its evidence as long as nothing else is seen to differ.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.replacing import spans_of
from tallystick.domain.batches.standing_batch import StandingBatch
from tallystick.domain.batches.states import Verdict
from tallystick.domain.identities import AttemptId, BatchId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition, offset_range
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.c3_rows_differ import C3
from tallystick.domain.rules.difference_evidence import ComparedSlice as ComparedSlice
from tallystick.domain.rules.difference_evidence import (
    evidence_of,
    is_as_before,
    slices_in,
    was_compared,
)
from tallystick.domain.rules.findings import Finding, FindingCode, Level, finding_in_batch
from tallystick.domain.rules.u1_could_not_tell import U1


class ComparedPlace(NamedTuple):
    """What a finding of a committed row is about: one partition in one file of a batch."""

    batch_id: str
    file: str
    """The one that answers for the offsets; empty where the batch has none."""
    partition: int


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


def is_refusal(finding: Finding) -> bool:
    """True for what an attempt has read wrongly: nothing of it was committed."""
    return finding.code is FindingCode.ROWS_DIFFER and finding.verdict is Verdict.UNKNOWN


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
    differing = {
        (each.read.asked.partition.partition, difference.offset)
        for each in compared
        for difference in each.differences
    }
    return frozenset(
        place_of(each)
        for each in standing
        if is_refusal(each) and is_compared(each, compared) and not _differs(each, differing)
    )


def _differs(finding: Finding, differing: Collection[tuple[int, int]]) -> bool:
    return any(
        number == finding.partition and run[0] <= offset < run[1]
        for number, offset in differing
        for run in slices_in(finding)
    )


def compared_again(
    batch_id: BatchId, standing: Iterable[Finding], compared: Sequence[ComparedSlice]
) -> frozenset[ComparedPlace]:
    """The places of standing findings whose slices were all compared again, and are equal."""
    differing = {
        (each.read.asked.partition.partition, difference.offset)
        for each in compared
        for difference in each.differences
    }
    ended = set()
    for each in standing:
        if not _is_about(batch_id, each):
            continue
        if is_compared(each, compared) and not _differs(each, differing):
            ended.add(place_of(each))
    return frozenset(ended)


def is_compared(finding: Finding, compared: Sequence[ComparedSlice]) -> bool:
    """True if all slices in which the finding has seen differences were compared, on both sides."""
    number, runs = finding.partition, slices_in(finding)
    return (
        number is not None
        and bool(runs)
        and not finding.evidence.get("more_slices")
        and all(was_compared(number, run, compared) for run in runs)
    )


def refused_before(
    batch_id: BatchId, attempts: Collection[AttemptId], standing: Iterable[Finding]
) -> tuple[Finding, ...]:
    """The standing findings for which these attempts, or the files that they hold, were refused."""
    return tuple(
        each
        for each in standing
        if is_refusal(each)
        and each.evidence.get("batch") == batch_id
        and not set(attempts).isdisjoint(_attempts_in(each))
    )


def also_refused(finding: Finding, attempt_id: AttemptId) -> Finding:
    """The finding, with one more attempt that holds what was refused."""
    attempts = sorted({*_attempts_in(finding), attempt_id})
    return replace(finding, evidence={**finding.evidence, "attempts": attempts})


def place_of(finding: Finding) -> ComparedPlace:
    """What a finding C3 is about; one about attempts has its subject in place of a file."""
    batch, file = finding.evidence.get("batch"), finding.evidence.get("file")
    file = finding.subject if is_refusal(finding) else file
    partition = -1 if finding.partition is None else finding.partition
    return ComparedPlace(str(batch), str(file or ""), partition)


def differing_rows(
    manifest: Manifest,
    files: Sequence[LandedFile],
    compared: Sequence[ComparedSlice],
    standing: Iterable[Finding] = (),
) -> tuple[Finding, ...]:
    """One finding for each partition of a committed file whose rows are not the log's records.

    One of `standing` that is still so, and no worse, is told as it is on record.
    """
    standing_names = {each.name for each in files}
    spans = {
        each.name: spans_of(manifest)[each.name]
        for each in manifest.files
        if each.name in standing_names or not each.slices
    }
    by_place: dict[tuple[str, int], list[ComparedSlice]] = {}
    for each in compared:
        for difference in each.differences:
            number = each.read.asked.partition.partition
            place = (_holder(spans, number, difference.offset), number)
            slices = by_place.setdefault(place, [])
            if not slices or slices[-1].read is not each.read:
                slices.append(ComparedSlice(each.read, ()))
            last = slices[-1]
            slices[-1] = ComparedSlice(last.read, (*last.differences, difference))
    known = {each.key: each for each in standing}
    found = []
    for (name, number), slices in sorted(by_place.items()):
        told = _of_committed(manifest, spans, name, number, slices)
        before = known.get(told.key)
        found.append(before if before and is_as_before(before, slices, compared) else told)
    return tuple(found)


def differing_attempt(
    plan: BatchPlan,
    attempt_id: AttemptId,
    compared: Sequence[ComparedSlice],
    standing: Sequence[Finding],
) -> tuple[Finding, ...]:
    """One finding for each range of an attempt whose rows are not the log's records.

    Each names every attempt of the batch that was refused so: none of them may be committed unseen.
    """
    found = []
    for planned in plan.ranges:
        offsets = planned.offsets
        mine = [
            each
            for each in compared
            if each.differences and each.read.asked.partition == offsets.partition
        ]
        if mine:
            told = replace(
                finding_in_batch(
                    plan,
                    offsets,
                    C3,
                    Verdict.UNKNOWN,
                    level=Level.L4,
                    cause=(
                        f"an attempt of batch {plan.batch_id} has rows that differ from what the"
                        f" broker serves: {_counted(mine)}. Nothing of the batch was committed."
                    ),
                    next_step=(
                        f"Land them again: ./tallystick land {plan.feed}. If it differs again, the"
                        " evidence shows both records: one of the two Kafka clients reads the log"
                        " wrongly, or the log changes."
                    ),
                    evidence={"batch": plan.batch_id, **evidence_of(mine)},
                ),
                # Committed rows of the same offsets may differ, too: that is another finding.
                subject=f"batch {plan.batch_id}",
            )
            attempts = {
                attempt_id,
                *(one for each in standing if each.key == told.key for one in _attempts_in(each)),
            }
            found.append(replace(told, evidence={**told.evidence, "attempts": sorted(attempts)}))
    return tuple(found)


def could_not_compare(feed: str, topic: str, reason: str) -> Finding:
    """The second reader, or what it is compared with, gave no answer."""
    return Finding(
        rule=U1,
        verdict=Verdict.UNKNOWN,
        level=Level.L4,
        feed=feed,
        topic=topic,
        cause=f"the second reader could not compare: {reason}",
        next_step=f"Run again when it answers: ./tallystick reconcile {feed} --level 4",
        subject="second reader",
    )


def described(compared: Sequence[ComparedSlice]) -> tuple[str, ...]:
    """The differences in words, one sentence for each partition."""
    by_partition: dict[TopicPartition, list[ComparedSlice]] = {}
    for each in compared:
        if each.differences:
            by_partition.setdefault(each.read.asked.partition, []).append(each)
    return tuple(
        f"{partition}: the rows are not what the broker serves to a second reader:"
        f" {_counted(slices)}"
        for partition, slices in sorted(by_partition.items())
    )


def _of_committed(
    manifest: Manifest,
    spans: Mapping[str, Sequence[OffsetRange]],
    name: str,
    partition: int,
    compared: Sequence[ComparedSlice],
) -> Finding:
    plan = manifest.plan
    span = _span(manifest, spans, name, partition)
    place = f"{BatchPath.of(plan)}/{name}" if name else f"batch {plan.batch_id}"
    return Finding(
        rule=C3,
        verdict=Verdict.PROVEN_LOSS,
        level=Level.L4,
        feed=plan.feed,
        topic=plan.topic,
        generation=plan.ordinal,
        partition=partition,
        from_offset=span.from_offset,
        until_offset=span.until_offset,
        cause=f"the rows in {place} are not the records that the log holds: {_counted(compared)}.",
        next_step=(
            "Compare the two records in the evidence. See what a repair would do:"
            f" ./tallystick repair {plan.feed} --dry-run. Delete nothing: what was landed may be"
            " the only copy of records that the log has lost."
        ),
        evidence={
            "batch": plan.batch_id,
            **({"file": name} if name else {}),
            **evidence_of(compared),
        },
        subject=name,
    )


def _span(
    manifest: Manifest, spans: Mapping[str, Sequence[OffsetRange]], name: str, partition: int
) -> OffsetRange:
    """What the file answers for; the planned range where the batch has no file."""
    planned = [each.offsets for each in manifest.plan.ranges]
    for each in (*spans.get(name, ()), *planned):
        if each.partition.partition == partition:
            return each
    raise ValueError(f"batch {manifest.plan.batch_id} has no offsets of partition {partition}")


def _holder(spans: Mapping[str, Sequence[OffsetRange]], partition: int, offset: int) -> str:
    """The file that answers for the offset; empty where the batch has none."""
    return next(
        (
            name
            for name, ranges in spans.items()
            for each in ranges
            if each.partition.partition == partition and offset in each
        ),
        "",
    )


def _is_about(batch_id: BatchId, finding: Finding) -> bool:
    is_committed = finding.verdict is Verdict.PROVEN_LOSS
    is_ours = finding.evidence.get("batch") == batch_id
    return finding.code is FindingCode.ROWS_DIFFER and is_committed and is_ours


def _attempts_in(finding: Finding) -> tuple[AttemptId, ...]:
    attempts = finding.evidence.get("attempts")
    return tuple(AttemptId(each) for each in attempts) if isinstance(attempts, list) else ()


def _counted(compared: Sequence[ComparedSlice]) -> str:
    differing = [each.offset for one in compared for each in one.differences]
    answered = sum(each.read.answered_count for each in compared)
    first, last = min(differing), max(differing)
    where = str(first) if first == last else f"{first} to {last}"
    return f"{len(differing)} of {answered} compared offsets differ, {where}"
