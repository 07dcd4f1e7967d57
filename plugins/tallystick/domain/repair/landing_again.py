"""Which committed files are landed again, from what the broker still has of them.

1. A file that is there is replaced only as a whole: it may hold rows that can be had nowhere else.
2. What is missing with its file, and gone from the broker too, becomes a loss on record; where the
   broker has nothing of a missing file, only on an operator's word: the finding named. Nothing is
   given up while anything below the feed's roots is unexplained or unread.
3. What is gone whole was moved or deleted by somebody, for a disk that fails leaves a file's name.
   It is landed again on an operator's word only: where it went, its rows would be there twice.
4. Files that share offsets are replaced together: what stayed beside a new batch would be there
   twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.batch import BatchPlan, CommittedFile, PlannedRange
from tallystick.domain.batches.landed import FileSlice, LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.replacing import spans_of
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition, offset_range, union_of
from tallystick.domain.repair.facts import NotMended, RepairFacts
from tallystick.domain.repair.quarantining import BesideStray
from tallystick.domain.rules.a8_committed_file_missing import EXPLAIN, OF_LOST
from tallystick.domain.rules.b2_landed_twice import SharedWith
from tallystick.domain.rules.c3_rows_differ import C3
from tallystick.domain.rules.evidence import file_in
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.stored_finding import StoredFinding

LATER: Final = "one repair carries out only so many batches; repair again for this one."
_UNEXPLAINED: Final = (
    "{path} is unexplained or unread, and may hold rows of this file that the broker no longer has:"
    f" nothing is given up before. {EXPLAIN}"
)
_GIVEN_UP_BY_NAME: Final = (
    "the broker has none of these offsets any more. Look for the file first (HDFS trash, snapshots,"
    " a person who moved it), and put it back. If it is gone for good, name this finding: the file"
    " is given up then, and its rows are recorded as lost."
)

_PERHAPS_MOVED: Final = (
    "the file is gone whole, so somebody has moved or deleted it. Where it was moved to, its rows"
    " would be there twice. If they are to be landed again, name this finding."
)


@dataclass(frozen=True, slots=True)
class HarmedFile:
    """A file that is damaged or missing, and a finding about it."""

    file: CommittedFile
    finding_id: int
    with_holes: bool
    """True where also the holes are landed again: the log may have records there."""


@dataclass(frozen=True, slots=True)
class LandAgain:
    """Files of one batch whose offsets become a batch of their own."""

    old: BatchPlan
    ranges: tuple[PlannedRange, ...]
    """Empty where the broker has none of them: the batch gives the files up, and lands nothing."""
    replaces: tuple[CommittedFile, ...]
    finding_ids: tuple[int, ...]
    gone: tuple[OffsetRange, ...] = ()
    """What missing files held and the broker has no more; its rows are lost from the commit on."""


def harmed_files(
    stored: StoredFinding, facts: RepairFacts
) -> Iterator[HarmedFile | BesideStray | NotMended]:
    """What the finding makes of the files that it is about."""
    number, found = stored.finding_id, stored.finding
    other = SharedWith.of(found)
    if other and other.kept_batch is None:
        yield BesideStray(number, other.path)
        return
    files = [] if other else _files_named(found, facts)
    if not files:
        yield NotMended(number, found.rule.why_not_mended or found.next_step)
    for file in files:
        yield HarmedFile(file, number, with_holes=found.rule == C3)


def _files_named(found: Finding, facts: RepairFacts) -> list[CommittedFile]:
    """The committed files that the finding is about: named in its evidence, or by its offsets.

    None for rows that a repair has lost: no file holds them.
    """
    if found.subject == OF_LOST:
        return []
    named = file_in(found.evidence)
    if named:
        return [named] if named.batch_id in facts.manifests else []
    if found.partition is None or found.from_offset is None or found.until_offset is None:
        return []
    return [
        CommittedFile(batch_id, file.name)
        for batch_id, manifest in sorted(facts.manifests.items())
        if manifest.plan.ordinal == found.generation
        for file in manifest.files
        if CommittedFile(batch_id, file.name) not in facts.replaced
        and any(
            each.meets(found.partition, found.from_offset, found.until_offset)
            for each in file.slices
        )
    ]


def land_again(
    harmed: Sequence[HarmedFile], facts: RepairFacts, *, most_partitions: int, most_batches: int
) -> Iterator[LandAgain | NotMended]:
    """At most so many batches that take the place of these files; the others wait, or are left."""
    with_holes = {each.file for each in harmed if each.with_holes}
    findings: dict[CommittedFile, list[int]] = {}
    for each in harmed:
        findings.setdefault(each.file, []).append(each.finding_id)
    drafts: list[LandAgain] = []
    bound = sharing_offsets(facts.manifests.values(), facts.replaced)
    for files in sorted({bound.get(file, (file,)) for file in findings}):
        finding_ids = sorted({number for file in files for number in findings.get(file, ())})
        draft = _together(files, finding_ids, facts, with_holes, most_partitions)
        if isinstance(draft, str):
            yield from (NotMended(number, draft) for number in finding_ids)
        else:
            drafts.append(draft)
    joined = _joined(drafts, most_partitions)
    yield from joined[:most_batches]
    for late in joined[most_batches:]:
        yield from (NotMended(number, LATER) for number in sorted(set(late.finding_ids)))


def _together(
    files: Sequence[CommittedFile],
    finding_ids: Sequence[int],
    facts: RepairFacts,
    with_holes: Collection[CommittedFile],
    most_partitions: int,
) -> LandAgain | str:
    """One batch in place of all files that hold the same offsets; or why they are left alone.

    What stayed of them beside a new batch would be there twice.
    """
    drafts = [_alone(each, finding_ids, facts, each in with_holes) for each in files]
    if len(drafts) == 1:
        return drafts[0]
    are_bound = f"{len(files)} committed files share offsets, and can only be replaced together: "
    refused = next((each for each in drafts if isinstance(each, str)), None)
    if refused:
        return are_bound + refused
    agreed = [each for each in drafts if isinstance(each, LandAgain)]
    generation_ids = {
        each.offsets.partition: each.generation_id for draft in agreed for each in draft.ranges
    }
    ranges = union_of(each.offsets for draft in agreed for each in draft.ranges)
    if len(ranges) > len(generation_ids):
        return are_bound + (
            "what they hold of a partition has gaps that other batches fill, so no single batch can"
            f" take their place. Look at A6 first. The files: {_names(files)}"
        )
    if len(ranges) > most_partitions:
        return are_bound + (
            f"they hold {len(ranges)} partitions, plan.max_partitions_per_batch is"
            f" {most_partitions}: set it higher, then try again."
        )
    return LandAgain(
        min((each.old for each in agreed), key=lambda old: (old.label, old.batch_id)),
        tuple(PlannedRange(generation_ids[each.partition], each) for each in ranges),
        tuple(files),
        tuple(finding_ids),
        union_of(gone for each in agreed for gone in each.gone),
    )


def _names(files: Sequence[CommittedFile]) -> str:
    return ", ".join(f"{each.name} of batch {each.batch_id}" for each in files[:20])


def _alone(
    file: CommittedFile, finding_ids: Sequence[int], facts: RepairFacts, has_holes_too: bool
) -> LandAgain | str:
    """The file's offsets as far as the broker has them; or why it is left alone."""
    manifest = facts.manifests[file.batch_id]
    landed = _file_of(manifest, file.name)
    if landed is None or file in facts.replaced:
        return "this file is replaced already; run reconcile to close the finding."
    if file in facts.in_staging:
        return "its batch is not published yet: a run or a repair does that first, and looks again."
    busy = [each.plan.batch_id for each in facts.accounts.unfinished if file in each.plan.replaces]
    if busy:
        return f"batch {busy[0]} lands these offsets again already: its end ends this finding."
    spans = _spans(manifest, landed, has_holes_too)
    parts = [still_readable(manifest.plan, each, facts) for each in spans]
    unheard = [each for each in parts if isinstance(each, str)]
    if unheard:
        return unheard[0]
    readable = [each for each in parts if isinstance(each, PlannedRange)]
    if not readable and file not in facts.missing:
        return (
            "the broker has none of these offsets any more, and the file, as far as it can be read,"
            " holds them: it is left as it is. Two people may accept what was found:"
            " tallystick waive --help"
        )
    gone = gone_below(manifest.plan, landed.slices, readable)
    if gone and file in facts.missing and facts.unexplained:
        return _UNEXPLAINED.format(path=facts.unexplained[0])
    if not readable and not facts.is_operators_word:
        return _GIVEN_UP_BY_NAME
    if file in facts.missing and not facts.is_operators_word:
        return _PERHAPS_MOVED
    if gone and file not in facts.missing:
        return (
            "the broker has a part of these offsets only, and the file, as far as it can be read,"
            " holds the others: it is left as it is."
        )
    return LandAgain(manifest.plan, tuple(readable), (file,), tuple(finding_ids), gone)


def _file_of(manifest: Manifest, name: str) -> LandedFile | None:
    return next((each for each in manifest.files if each.name == name), None)


def _spans(manifest: Manifest, file: LandedFile, has_holes_too: bool) -> tuple[OffsetRange, ...]:
    """The offsets that the file holds, with or without the holes that it answers for."""
    if has_holes_too:
        return spans_of(manifest)[file.name]
    topic = manifest.plan.topic
    return tuple(
        OffsetRange(TopicPartition(topic, each.partition), each.first_offset, each.last_offset + 1)
        for each in file.slices
    )


def _joined(drafts: Sequence[LandAgain], most_partitions: int) -> tuple[LandAgain, ...]:
    """Drafts of the same old batch together, as long as no partition comes twice."""
    joined: list[LandAgain] = []
    for draft in drafts:
        partitions = {each.offsets.partition for each in draft.ranges}
        for place, other in enumerate(joined):
            taken = {each.offsets.partition for each in other.ranges}
            fits = len(taken) + len(partitions) <= most_partitions
            if other.old.batch_id == draft.old.batch_id and fits and not taken & partitions:
                joined[place] = LandAgain(
                    other.old,
                    (*other.ranges, *draft.ranges),
                    (*other.replaces, *draft.replaces),
                    (*other.finding_ids, *draft.finding_ids),
                    (*other.gone, *draft.gone),
                )
                break
        else:
            joined.append(draft)
    return tuple(joined)


def sharing_offsets(
    manifests: Iterable[Manifest], replaced: Collection[CommittedFile]
) -> Mapping[CommittedFile, tuple[CommittedFile, ...]]:
    """By file, the sorted files that it is bound to, itself included; without replaced files.

    Two files are bound where their slices share an offset of one generation, and through others.
    """
    groups: dict[CommittedFile, set[CommittedFile]] = {}
    for slices in _by_log(manifests, replaced, groups).values():
        slices.sort(key=lambda each: (each[0].first_offset, each[0].last_offset))
        furthest: tuple[FileSlice, CommittedFile] | None = None
        for held, file in slices:
            if furthest and held.first_offset <= furthest[0].last_offset:
                _bind(groups, file, furthest[1])
            if furthest is None or held.last_offset > furthest[0].last_offset:
                furthest = (held, file)
    return {file: tuple(sorted(group)) for file, group in groups.items()}


def _by_log(
    manifests: Iterable[Manifest],
    replaced: Collection[CommittedFile],
    groups: dict[CommittedFile, set[CommittedFile]],
) -> Mapping[tuple[int, int], list[tuple[FileSlice, CommittedFile]]]:
    """The slices by generation and partition; each file is a group of its own at first."""
    slices: defaultdict[tuple[int, int], list[tuple[FileSlice, CommittedFile]]] = defaultdict(list)
    for manifest in manifests:
        for landed in manifest.files:
            file = CommittedFile(manifest.plan.batch_id, landed.name)
            if file not in replaced:
                groups[file] = {file}
                for each in landed.slices:
                    slices[manifest.plan.ordinal, each.partition].append((each, file))
    return slices


def _bind(
    groups: dict[CommittedFile, set[CommittedFile]], one: CommittedFile, other: CommittedFile
) -> None:
    small, large = sorted((groups[one], groups[other]), key=len)
    if small is not large:
        large |= small
        for each in small:
            groups[each] = large


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
