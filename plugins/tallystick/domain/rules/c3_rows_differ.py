"""C3, rows differ: landed rows are not the records that another client reads from the broker.

1. A committed row that is not the log's record is a loss: what the log holds there is in no file.
2. A finding keeps its evidence as long as nothing else is seen to differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.replacing import spans_of
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rules.c3_evidence import ComparedSlice, evidence_of, is_as_before
from tallystick.domain.rules.causes import its_file
from tallystick.domain.rules.evidence import batch_in, file_in, of_file
from tallystick.domain.rules.findings import Finding, finding_in_batch
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
    return finding_in_batch(
        plan,
        _span(manifest, spans, name, partition),
        C3,
        Verdict.PROVEN_LOSS,
        cause=f"the rows in {place} are not the records that the log holds: {_counted(compared)}.",
        next_step=(
            "Compare the two records in the evidence. See what a repair would do:"
            f" tallystick repair {plan.feed} --dry-run. Delete nothing: what was landed may be"
            " the only copy of records that the log has lost."
        ),
        evidence={**of_file(plan.batch_id, name), **evidence_of(compared)},
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


def _counted(compared: Sequence[ComparedSlice]) -> str:
    differing = [each.offset for one in compared for each in one.differences]
    answered = sum(each.read.answered_count for each in compared)
    first, last = min(differing), max(differing)
    where = str(first) if first == last else f"{first} to {last}"
    return f"{len(differing)} of {answered} compared offsets differ, {where}"
