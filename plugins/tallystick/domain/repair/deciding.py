"""What can be done about findings, and about which nothing can. Decides; performs nothing.

1. Committed rows that are missing or damaged are landed again, file by file, where the broker still
   has them; nothing else is touched.
2. A file that is there is replaced only as a whole: it may hold rows that can be had nowhere else.
   What is missing with its file, and gone from the broker too, becomes a loss on record; where the
   broker has nothing of a missing file, only on an operator's word: the finding named.
3. A stray file is moved out of the readers' directories, and kept; none while the ledger is behind,
   and one that may be the only copy of its rows only when its finding is named. So is a directory
   without a manifest.
4. A manifest that is gone is written anew: what it says, the ledger has.
5. A record that Spark could not read is asked for again on an operator's word.
6. A committed file that lies elsewhere is moved back when its finding is named; it is never landed
   again, nor given up. Nor is one of which a stray may hold rows that the broker has no more.
7. A new generation of a log that was cut is opened only on an operator's word: the finding named.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tallystick.domain.batches.batch import BatchPlan, CommittedFile, PlannedRange
from tallystick.domain.batches.landed import FileSlice, LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import QUARANTINE_NAME
from tallystick.domain.batches.replacing import spans_of
from tallystick.domain.batches.states import Verdict
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition, offset_range, union_of
from tallystick.domain.repair.plan import (
    EndsWithStray,
    LandAgain,
    MoveBack,
    NewGeneration,
    NotMended,
    NumberedFinding,
    PutAside,
    ReadAgain,
    RepairFacts,
    RepairPlan,
    WriteManifest,
)
from tallystick.domain.repair.reading_again import read_again
from tallystick.domain.repair.shared_offsets import sharing_offsets
from tallystick.domain.rules.a8_committed_file_missing import OF_LOST
from tallystick.domain.rules.findings import Finding, FindingCode
from tallystick.domain.rules.storage_rules import is_bare

# Findings about rows of committed files: the file is what can be replaced.
_OF_FILES: Final = frozenset(
    {
        FindingCode.COMMITTED_FILE_MISSING,
        FindingCode.CONTENT_CHANGED,
        FindingCode.ABORTED_LANDED,
        FindingCode.ROWS_DIFFER,
        FindingCode.LANDED_TWICE,
    }
)
_PERHAPS_FORGOTTEN: Final = (
    "the ledger lacks published batches (A10), and the file may be of one of them, and hold the"
    " only copy of its rows: ./tallystick ledger rebuild {feed}, then repair."
)
_PERHAPS_AT: Final = (
    "{path} may hold rows of this file that the broker no longer has, so they are not given up yet."
    " Could nobody look there (U1)? Let our user read {path}. Is it this file, written anew? Put it"
    " in its place; two people may accept what has changed (C1). Is it something else? Name the"
    " finding about {path} first (A9)."
)
_MOVED: Final = (
    "{path} is this file, by length and checksum. Move it back: hdfs dfs -mv {path} {target}."
    " Or name the number of its finding A8, and it is moved."
)
LATER: Final = "one repair carries out only so many batches; repair again for this one."
_GIVEN_UP_BY_NAME: Final = (
    "the broker has none of these offsets any more. Look for the file first (HDFS trash, snapshots,"
    " a person who moved it), and put it back. If it is gone for good, name this finding: the file"
    " is given up then, and its rows are recorded as lost."
)
BESIDE_STRAY: Final = (
    "the other copy is a stray file: its finding A9 moves it; A10 its directory without manifest."
)
NOT_WRITTEN: Final = "no manifest was written: its directory is gone, or an error says why."
NOT_MOVED: Final = (
    "nothing was moved: it is gone, or a batch's by now, or an error says why. Run reconcile."
)
NOT_MOVED_BACK: Final = (
    "it was not moved back: it lies there no more, or an error says why. Run reconcile."
)
NOT_READ: Final = "it was not read this time either, or its batch waits still."
_BY_NUMBER: Final = "It may be the only copy, so it is moved when this finding is named."


@dataclass
class _Drafts:
    """What is decided so far."""

    files: dict[CommittedFile, list[int]] = field(default_factory=dict)
    """Damaged or missing ones, each with the findings about it."""
    with_holes: set[CommittedFile] = field(default_factory=set)
    """Those of which also the holes are landed again: the log may have records there."""
    put_aside: list[PutAside] = field(default_factory=list)
    move_back: list[MoveBack] = field(default_factory=list)
    beside_strays: dict[int, str] = field(default_factory=dict)
    """Findings about rows that are in a stray file, too, each with its path."""
    write_manifests: list[WriteManifest] = field(default_factory=list)
    new_generations: list[NewGeneration] = field(default_factory=list)
    read_again: list[ReadAgain] = field(default_factory=list)
    finish: list[int] = field(default_factory=list)
    not_mended: list[NotMended] = field(default_factory=list)

    def refuse(self, finding_ids: Iterable[int], reason: str) -> None:
        self.not_mended += [NotMended(each, reason) for each in finding_ids]

    def put(self, draft: PutAside | ReadAgain | NotMended) -> None:
        match draft:
            case PutAside():
                self.put_aside.append(draft)
            case ReadAgain():
                self.read_again.append(draft)
            case NotMended():
                self.not_mended.append(draft)

    def ending_with_strays(self) -> Iterator[EndsWithStray]:
        """Those whose stray is moved by this plan; the others are refused."""
        strays = {each.path: each.finding_id for each in self.put_aside}
        for number, path in self.beside_strays.items():
            moved = next((each for each in (path, directory_of(path)) if each in strays), None)
            if moved:
                yield EndsWithStray(number, strays[moved])
            else:
                self.refuse([number], BESIDE_STRAY)


def plan_repair(
    findings: Sequence[NumberedFinding],
    facts: RepairFacts,
    *,
    most_partitions: int,
    most_batches: int,
) -> RepairPlan:
    """What can be done about these findings; every one of them is in the plan exactly once.

    A batch of the plan holds at most so many partitions, and at most one range of each. Batches
    beyond the most that one repair carries out are left to the next, with their findings.
    """
    drafts = _Drafts()
    for each in findings:
        _sort(each, facts, drafts)
    end_with_strays = tuple(drafts.ending_with_strays())
    land_again: list[LandAgain] = []
    bound = sharing_offsets(facts.manifests.values(), facts.replaced)
    for files in sorted({bound.get(file, (file,)) for file in drafts.files}):
        finding_ids = sorted({number for file in files for number in drafts.files.get(file, ())})
        draft = _landing_together(files, finding_ids, facts, drafts.with_holes, most_partitions)
        if isinstance(draft, str):
            drafts.refuse(finding_ids, draft)
        else:
            land_again.append(draft)
    joined = _joined(land_again, most_partitions)
    for late in joined[most_batches:]:
        drafts.refuse(sorted(set(late.finding_ids)), LATER)
    return RepairPlan(
        land_again=joined[:most_batches],
        put_aside=tuple(drafts.put_aside),
        move_back=tuple(drafts.move_back),
        end_with_strays=end_with_strays,
        write_manifests=tuple(drafts.write_manifests),
        new_generations=tuple(drafts.new_generations),
        read_again=tuple(drafts.read_again),
        finish=tuple(drafts.finish),
        not_mended=tuple(drafts.not_mended),
    )


def _sort(numbered: NumberedFinding, facts: RepairFacts, drafts: _Drafts) -> None:
    number, found = numbered.finding_id, numbered.finding
    match found.code:
        case FindingCode.LANDED_TWICE if "kept_batch" in found.evidence:
            drafts.refuse([number], found.next_step)
        case FindingCode.LANDED_TWICE if "path" in found.evidence:
            drafts.beside_strays[number] = str(found.evidence["path"])
        case code if _may_replace(code, facts) and _files_named(found, facts):
            _replace_files(numbered, facts, drafts)
        case FindingCode.STRAY_FILE:
            drafts.put(_put_aside(numbered, facts))
        case FindingCode.LEDGER_BEHIND:
            drafts.put(_put_bare_aside(numbered, facts))
        case FindingCode.UNFINISHED_BATCH if "manifest" in found.evidence:
            drafts.write_manifests.append(WriteManifest(str(found.evidence["manifest"]), number))
        case FindingCode.UNFINISHED_BATCH:
            drafts.finish.append(number)
        case FindingCode.UNREADABLE_RECORD:
            drafts.put(read_again(numbered, facts))
        case _ if found.rule.is_cut and found.verdict is Verdict.PROVEN_LOSS:
            _reopen(number, found, facts, drafts)
        case _:
            drafts.refuse([number], found.rule.why_not_mended or found.next_step)


def _may_replace(code: FindingCode, facts: RepairFacts) -> bool:
    """True for what a file is replaced for; one that only can't be read, on an operator's word."""
    return code in _OF_FILES or (code is FindingCode.COULD_NOT_TELL and facts.is_operators_word)


def _put_aside(numbered: NumberedFinding, facts: RepairFacts) -> PutAside | NotMended:
    if facts.is_ledger_behind:
        reason = _PERHAPS_FORGOTTEN.format(feed=numbered.finding.feed)
        return NotMended(numbered.finding_id, reason)
    stray = stray_of(numbered, facts.roots)
    why = facts.sole_copies.get(stray.path) if isinstance(stray, PutAside) else None
    if why and not facts.is_operators_word:
        return NotMended(numbered.finding_id, f"{why} {_BY_NUMBER}")
    return stray


def _put_bare_aside(numbered: NumberedFinding, facts: RepairFacts) -> PutAside | NotMended:
    """A directory that the ledger does not know is moved only if it is bare, and was named."""
    if is_bare(numbered.finding) and facts.is_operators_word:
        return stray_of(numbered, facts.roots)
    return NotMended(numbered.finding_id, numbered.finding.next_step)


def _replace_files(numbered: NumberedFinding, facts: RepairFacts, drafts: _Drafts) -> None:
    """The files that the finding is about: landed again, or moved back where they lie elsewhere."""
    number = numbered.finding_id
    for file in _files_named(numbered.finding, facts):
        moved = facts.elsewhere.get(file)
        if moved is None:
            drafts.files.setdefault(file, []).append(number)
            if numbered.finding.code is FindingCode.ROWS_DIFFER:
                drafts.with_holes.add(file)
        elif (
            facts.is_operators_word and numbered.finding.code is FindingCode.COMMITTED_FILE_MISSING
        ):
            drafts.move_back.append(MoveBack(moved.path, moved.target, number))
        else:
            drafts.refuse([number], _MOVED.format(path=moved.path, target=moved.target))


def _files_named(found: Finding, facts: RepairFacts) -> list[CommittedFile]:
    """The committed files that the finding is about: named in its evidence, or by its offsets.

    None for rows that a repair has lost: no file holds them.
    """
    if found.subject == OF_LOST:
        return []
    batch, name = found.evidence.get("batch"), found.evidence.get("file")
    if isinstance(batch, str) and isinstance(name, str):
        return [CommittedFile(BatchId(batch), name)] if batch in facts.manifests else []
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


def directory_of(path: str) -> str:
    """The directory that a file lies in: one without manifest is moved as a whole."""
    return path.rpartition("/")[0]


def stray_of(stray: NumberedFinding, roots: Iterable[str]) -> PutAside | NotMended:
    """Where the stray file of a finding A9 is put: below the innermost root that it lies in.

    What another feed has landed is not this feed's to move.
    `roots` are all that the feed ever had.
    """
    number, found = stray.finding_id, stray.finding
    if "other_feed" in found.evidence:
        return NotMended(number, found.next_step)
    path = str(found.evidence["path"])
    holding = [each for each in roots if path.startswith(f"{each}/{found.feed}/")]
    if not holding:
        return NotMended(number, "it lies below no root of this feed; move it yourself.")
    root = max(holding, key=len)
    inside = path.removeprefix(f"{root}/{found.feed}/")
    return PutAside(path, f"{root}/{QUARANTINE_NAME}/{found.feed}/strays/{number}/{inside}", number)


def _reopen(number: int, found: Finding, facts: RepairFacts, drafts: _Drafts) -> None:
    account = facts.accounts.generations.get(-1 if found.partition is None else found.partition)
    bounds = facts.snapshot.partitions.get(-1 if found.partition is None else found.partition)
    if account is None or account.ordinal != found.generation:
        drafts.refuse([number], "this generation is closed already.")
    elif account.state is not GenerationState.STOPPED:
        drafts.refuse([number], "this partition has not stopped; the next run looks at it again.")
    elif bounds is None:
        drafts.refuse([number], "the broker says nothing of it now; try again when it does.")
    elif account.topic_id != facts.snapshot.topic_id:
        drafts.refuse([number], "the topic was re-created since; the next run opens a generation.")
    elif not facts.is_operators_word:
        drafts.refuse(
            [number],
            "a new generation is opened on your word only, for rows may be landed twice in two"
            f" generations: ./tallystick repair {found.feed} {number}",
        )
    else:
        # Never at a log start beyond the frontier: what has expired since would be named nowhere.
        known = min(bounds.log_start_offset, account.frontier)
        cut = facts.cut_at.get(account.partition.partition, known)
        # The finding names where the log was cut then: the broker may have forgotten it since.
        told = account.frontier if found.from_offset is None else found.from_offset
        first = min(cut, told, bounds.high_watermark)
        drafts.new_generations.append(
            NewGeneration(account, found.code, first, bounds.log_start_offset, number)
        )


def _landing_together(
    files: Sequence[CommittedFile],
    finding_ids: Sequence[int],
    facts: RepairFacts,
    with_holes: Collection[CommittedFile],
    most_partitions: int,
) -> LandAgain | str:
    """One batch in place of all files that hold the same offsets; or why they are left alone.

    What stayed of them beside a new batch would be there twice.
    """
    drafts = [_landing_again(each, finding_ids, facts, each in with_holes) for each in files]
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
            f" take their place. Look at B1 first. The files: {_names(files)}"
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


def _landing_again(
    file: CommittedFile, finding_ids: Sequence[int], facts: RepairFacts, has_holes_too: bool
) -> LandAgain | str:
    """The file's offsets as far as the broker has them; or why it is left alone."""
    manifest = facts.manifests[file.batch_id]
    landed = _file_of(manifest, file.name)
    if landed is None or file in facts.replaced:
        return "this file is replaced already; run reconcile to close the finding."
    if file in facts.in_staging:
        return "its batch is not published yet; the next run does that first."
    busy = [each.plan.batch_id for each in facts.accounts.unfinished if file in each.plan.replaces]
    if busy:
        return f"batch {busy[0]} is landing these offsets again already."
    spans = _spans(manifest, landed, has_holes_too)
    parts = [_readable(manifest.plan, each, facts) for each in spans]
    unheard = [each for each in parts if isinstance(each, str)]
    if unheard:
        return unheard[0]
    readable = [each for each in parts if isinstance(each, PlannedRange)]
    if not readable and file not in facts.missing:
        return (
            "the broker has none of these offsets any more, and the file, as far as it can be read,"
            " holds them: it is left as it is. Two people may accept what was found:"
            " ./tallystick waive --help"
        )
    gone = _gone(manifest.plan, landed.slices, readable)
    if gone and file in facts.perhaps_at:
        return _PERHAPS_AT.format(path=facts.perhaps_at[file])
    if not readable and not facts.is_operators_word:
        return _GIVEN_UP_BY_NAME
    if gone and file not in facts.missing:
        return (
            "the broker has a part of these offsets only, and the file, as far as it can be read,"
            " holds the others: it is left as it is."
        )
    return LandAgain(manifest.plan, tuple(readable), (file,), tuple(finding_ids), gone)


def _gone(
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


def _readable(plan: BatchPlan, held: OffsetRange, facts: RepairFacts) -> PlannedRange | str | None:
    """What the broker has of the offsets; a sentence where it can't be asked.

    None only where these offsets are gone for certain: with their log, or before its start.
    """
    snapshot = facts.snapshot
    if (plan.cluster_id, plan.topic_id) != (snapshot.cluster_id, snapshot.topic_id):
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
