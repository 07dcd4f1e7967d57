"""C3, rows differ: landed rows are not the records that another client reads from the broker.

1. A committed row that is not the log's record is a loss: what the log holds there is in no file.
2. A finding keeps its evidence as long as nothing else is seen to differ: all that is on record is
   compared, not what is shown of it.
3. What was not compared, on either side, proves nothing and ends nothing.
4. Evidence is bounded, whatever the records hold and however many differ.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final, NamedTuple

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.replacing import spans_of
from tallystick.domain.batches.standing_batch import StandingBatch
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition, offset_range
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.second_read import Difference, RecordHead, SeenRecord, SliceRead
from tallystick.domain.rules.causes import its_file
from tallystick.domain.rules.evidence import batch_in, file_in, of_file
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

C3: Final = Rule(
    code=FindingCode.ROWS_DIFFER,
    kind=RuleClass.CORRUPTION,
    compares="landed rows against the records that another Kafka client reads",
    endings={Level.L4: Ending.SECOND_READ},
    verdicts=(Verdict.PROVEN_LOSS,),
    not_when="expired, or cleaned from a compacted topic; the log is known to be cut",
    remedy="landed again while the broker has it",
    one_cause=its_file,
    mending=Mending.LAND_AGAIN,
    traits={Trait.DOUBTS_FILE},
)


class ComparedPlace(NamedTuple):
    """What a finding of a committed row is about: one partition in one file of a batch."""

    batch_id: BatchId | None
    file: str
    """The one that answers for the offsets; empty where the batch has none."""
    partition: int


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


def place_of(finding: Finding) -> ComparedPlace:
    """What a finding C3 is about."""
    file = file_in(finding.evidence)
    partition = -1 if finding.partition is None else finding.partition
    return ComparedPlace(batch_in(finding.evidence), file.name if file else "", partition)


def _of_committed(
    manifest: Manifest,
    spans: Mapping[str, Sequence[OffsetRange]],
    name: str,
    partition: int,
    compared: Sequence[ComparedSlice],
) -> Finding:
    plan = manifest.plan
    place = f"{BatchPath.of(plan)}/{name}" if name else f"batch {plan.batch_id}"
    span = _span(manifest, spans, name, partition)
    return finding(
        C3,
        replace(Place.in_batch(plan, span), subject=name),
        cause=f"the rows in {place} are not the records that the log holds: {_counted(compared)}.",
        next_step=(
            "Compare the two records in the evidence. See what a repair would do:"
            f" tallystick repair {plan.feed} --dry-run. Delete nothing: what was landed may be"
            " the only copy of records that the log has lost."
        ),
        evidence={**of_file(plan.batch_id, name), **evidence_of(compared)},
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


def _counted(compared: Sequence[ComparedSlice]) -> str:
    differing = [each.offset for one in compared for each in one.differences]
    answered = sum(each.read.answered_count for each in compared)
    first, last = min(differing), max(differing)
    where = str(first) if first == last else f"{first} to {last}"
    return f"{len(differing)} of {answered} compared offsets differ, {where}"


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


MOST_SHOWN: Final = 3
"""Differences that a finding shows in full; all of them are counted."""
MOST_SLICES: Final = 50


@dataclass(frozen=True, slots=True)
class ComparedSlice:
    """One slice, read by both."""

    read: SliceRead
    differences: tuple[Difference, ...]


def slices_in(finding: Finding) -> tuple[tuple[int, int], ...]:
    """The slices [from, until) in which the finding has seen differences."""
    runs = finding.evidence.get("slices")
    return tuple((int(run[0]), int(run[1])) for run in runs) if isinstance(runs, list) else ()


def _digests_in(finding: Finding) -> Sequence[object]:
    digests = finding.evidence.get("digests")
    return digests if isinstance(digests, list) else ()


def was_compared(partition: int, run: tuple[int, int], compared: Sequence[ComparedSlice]) -> bool:
    """True if both readers have answered for all of the run, in one slice or in several."""
    mine = [each.read for each in compared if each.read.asked.partition.partition == partition]
    answered = OffsetRuns.of((each.from_offset, each.until_offset) for each in mine)
    is_shown = not any(run[0] <= offset < run[1] for each in mine for offset in each.not_shown)
    return is_shown and not OffsetRuns.of([run]).difference(answered)


def is_as_before(
    known: Finding, differing: Sequence[ComparedSlice], compared: Sequence[ComparedSlice]
) -> bool:
    """True if what differs now is what is on record: in each slice the same, and nowhere else.

    Another sample sees other offsets: equal ones change nothing, differing ones make it worse. A
    slice of which a part could not be compared is as it was, if nothing differs in the rest.
    What is on record is the first MOST_SLICES slices: more of them can't stay accepted.
    """
    now = [each for one in differing for each in one.differences]
    recorded = list(zip(slices_in(known), _digests_in(known), strict=False))
    if any(not any(a <= each.offset < b for (a, b), _ in recorded) for each in now):
        return False
    for run, digest in recorded:
        inside = [each for each in now if run[0] <= each.offset < run[1]]
        is_unasked = not inside and not was_compared(known.partition or 0, run, compared)
        if not is_unasked and _digest(inside) != digest:
            return False
    return True


def evidence_of(compared: Sequence[ComparedSlice]) -> Mapping[str, object]:
    """What a finding rests on that tells of the differences in these slices."""
    differing = [each for one in compared for each in one.differences]
    return {
        "differences": len(differing),
        "compared": sum(each.read.answered_count for each in compared),
        "slices": [
            [each.read.from_offset, each.read.until_offset] for each in compared[:MOST_SLICES]
        ],
        # Of every difference in each of these slices: what is shown below is but the first few.
        "digests": [_digest(each.differences) for each in compared[:MOST_SLICES]],
        "more_slices": len(compared[MOST_SLICES:]),
        "records": [_shown_difference(each) for each in differing[:MOST_SHOWN]],
    }


def _digest(differences: Iterable[Difference]) -> str:
    """SHA-256 of all that both sides said at these offsets."""
    said = [
        [each.offset, *(_identity(one) for one in (each.landed, each.served))]
        for each in differences
    ]
    return sha256(json.dumps(said).encode()).hexdigest()


def _identity(record: SeenRecord | None) -> Sequence[object] | None:
    return None if record is None else (record.content_hash.hex(), record.head.timestamp_type)


def _shown_difference(difference: Difference) -> Mapping[str, object]:
    return {
        "offset": difference.offset,
        "landed": _record(difference.landed),
        "served": _record(difference.served),
    }


def _record(record: SeenRecord | None) -> Mapping[str, object] | None:
    if record is None:
        return None
    head: RecordHead = record.head
    return {
        "hash": record.content_hash.hex(),
        "timestamp_ms": head.timestamp_ms,
        "timestamp_type": head.timestamp_type,
        "key": _shown(head.key, head.key_bytes),
        "value": _shown(head.value, head.value_bytes),
        "headers": list(head.header_names),
        "header_count": head.header_count,
    }


def _shown(content: bytes | None, length: int) -> str | None:
    """The first bytes as Python writes them, and how many there are; None for null.

    >>> _shown(b"ab", 2), _shown(b"abc", 5_000)
    ("b'ab'", "b'abc' ... 5000 bytes")
    """
    if content is None:
        return None
    return f"{content!r} ... {length} bytes" if length > len(content) else repr(content)
