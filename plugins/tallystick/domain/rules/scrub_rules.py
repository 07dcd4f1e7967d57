"""Level L3: what a full read of landed files says about batches, against what was committed.

1. Offsets first: what is missing is A8, what is there twice is B2, each with its exact intervals.
2. Where the offsets are right, the first full read gives the fingerprint; a later one that differs
   is C1. Where they are not, the fingerprint says nothing new, and none is taken.
3. A file that could not be read is a loss only if its bytes prove it; otherwise it is UNKNOWN.
4. A fingerprint is taken only of a file whose length and checksum are those of the commit.
5. Rows that differ in a file whose length and checksum do not prove one of the two witnesses wrong,
   and nobody knows which: UNKNOWN.
6. What is told rests on what was found: the file's length and checksum, or its rows' fingerprint.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final, NamedTuple

from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.states import Verdict
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rows.scrub import BoundedRuns, ExpectedSlice, ReadFile, ReadSlice, ScrubFile
from tallystick.domain.rules.a8_committed_file_missing import A8
from tallystick.domain.rules.b2_landed_twice import B2
from tallystick.domain.rules.c1_content_changed import C1
from tallystick.domain.rules.findings import Finding, Level
from tallystick.domain.rules.rule import Rule
from tallystick.domain.rules.storage_rules import StoredFile, missing_or_changed
from tallystick.domain.rules.u1_could_not_tell import U1


class SliceKey(NamedTuple):
    """A slice of a batch: one partition in one file."""

    name: str
    partition: int


@dataclass(frozen=True, slots=True)
class DueBatch:
    """A published batch that is due for a full read."""

    batch_id: BatchId
    byte_count: int
    """Of its files that were not retracted."""
    checked_at: datetime | None
    """When it was last read in full; None before the first time."""


@dataclass(frozen=True, slots=True)
class StandingBatch:
    """A committed batch, which of its files stand, and what the first full read of them found."""

    manifest: Manifest
    standing: frozenset[str]
    """Names of the files that no repair has retracted."""
    fingerprints: Mapping[SliceKey, Fingerprint]

    @property
    def batch_id(self) -> BatchId:
        """The batch's id."""
        return self.manifest.plan.batch_id

    @property
    def files(self) -> tuple[LandedFile, ...]:
        """The files with rows that still stand."""
        return tuple(
            each for each in self.manifest.files if each.slices and each.name in self.standing
        )


@dataclass(frozen=True, slots=True)
class BatchJudgement:
    """What a full read says of one batch."""

    findings: tuple[Finding, ...]
    taken: Mapping[SliceKey, Fingerprint]
    """Fingerprints of slices of which none was on record."""
    is_complete: bool
    """False when a file could not be read for a reason that proves nothing: it stays due."""
    is_as_committed: bool
    """True when every file has the length and the checksum of its commit."""

    @property
    def is_well(self) -> bool:
        """True when every file was read and nothing was found in its rows."""
        return self.is_complete and not self.findings

    @property
    def is_clean(self) -> bool:
        """True when the files are as they were committed, too."""
        return self.is_well and self.is_as_committed


def within_budget(due: Sequence[DueBatch], budget_bytes: int) -> tuple[DueBatch, ...]:
    """The first of the batches, as many as the budget allows; at least one, so that all come round.

    >>> first, second = DueBatch(BatchId("a"), 60, None), DueBatch(BatchId("b"), 50, None)
    >>> [each.batch_id for each in within_budget([first, second], 100)]
    ['a']
    """
    chosen, size = list[DueBatch](), 0
    for each in due:
        size += each.byte_count
        if chosen and size > budget_bytes:
            break
        chosen.append(each)
    return tuple(chosen)


def files_to_read(batch: StandingBatch, uri_of: Callable[[str], str]) -> tuple[ScrubFile, ...]:
    """The batch's standing files as a scrub is told them, with the offsets that they must hold."""
    directory = BatchPath.of(batch.manifest.plan)
    holes: dict[int, OffsetRuns] = {}
    for each in batch.manifest.ranges:
        runs = [run for kind in each.holes.values() for run in kind]
        holes[each.planned.offsets.partition.partition] = OffsetRuns.of(runs)
    return tuple(
        ScrubFile(
            file.name,
            uri_of(f"{directory}/{file.name}"),
            file.length_bytes,
            tuple(
                ExpectedSlice(
                    each.partition,
                    each.first_offset,
                    each.last_offset,
                    holes.get(each.partition, OffsetRuns()).clipped(
                        each.first_offset, each.last_offset + 1
                    ),
                    batch.fingerprints.get(SliceKey(file.name, each.partition)),
                )
                for each in file.slices
            ),
        )
        for file in batch.files
    )


def while_read(
    before: Mapping[str, StoredFile], after: Mapping[str, StoredFile]
) -> Mapping[str, StoredFile]:
    """Files as they were found after the read; of one that was another before it nobody knows what
    was read.
    """
    return {
        name: each
        if each.trouble is not None or each == before.get(name)
        else replace(each, checksum=None, trouble="it was changed while it was read")
        for name, each in after.items()
    }


def judged(
    batch: StandingBatch, read: Mapping[str, ReadFile], stored: Mapping[str, StoredFile]
) -> BatchJudgement:
    """What the read of a batch's files means; `stored` are those that are there, as storage shows
    them at this same look.
    """
    findings: list[Finding] = []
    taken: dict[SliceKey, Fingerprint] = {}
    is_complete = is_as_committed = True
    for file in batch.files:
        found = read.get(file.name, ReadFile(file.name, failure="the scrub does not name it"))
        now = stored.get(file.name)
        is_as_committed = is_as_committed and now is not None and now.is_as_committed(file)
        if now is None:
            directory = str(BatchPath.of(batch.manifest.plan))
            alone = replace(batch.manifest, files=(file,))
            findings += missing_or_changed(alone, directory, stored)
        elif found.failure is not None:
            findings += _of_unread_file(batch.manifest, file, found, now)
            is_complete = is_complete and found.is_damaged
        else:
            for each in found.slices:
                findings += _of_offsets(batch.manifest, file, each)
                content = _of_content(batch, file, each, now)
                findings += content.findings
                taken |= content.taken
                is_complete = is_complete and content.is_complete
    return BatchJudgement(tuple(findings), taken, is_complete, is_as_committed)


def _of_offsets(manifest: Manifest, file: LandedFile, read: ReadSlice) -> Iterator[Finding]:
    place = f"{BatchPath.of(manifest.plan)}/{file.name}"
    yield from _of_runs(
        manifest,
        file,
        read,
        read.missing,
        A8,
        Verdict.PROVEN_LOSS,
        f"committed rows are not in storage: {place} has no row of these offsets.",
    )
    yield from _of_runs(
        manifest,
        file,
        read,
        read.doubled,
        B2,
        Verdict.PROVEN_DUP,
        f"{place} has more than one row of each of these offsets.",
    )
    yield from _of_runs(
        manifest,
        file,
        read,
        read.foreign,
        B2,
        Verdict.SUSPECTED,
        f"{place} has rows of these offsets, which were not committed with it: another file holds"
        " them too, or nobody has ever proven them.",
        among="rows that were not committed",
    )


class _Content(NamedTuple):
    """What a slice's rows say, beside their offsets."""

    findings: tuple[Finding, ...] = ()
    taken: Mapping[SliceKey, Fingerprint] = MappingProxyType({})
    is_complete: bool = True


def _of_content(
    batch: StandingBatch, file: LandedFile, read: ReadSlice, now: StoredFile
) -> _Content:
    """What the fingerprint says, once the offsets are right."""
    key = SliceKey(file.name, read.partition)
    known = batch.fingerprints.get(key)
    if not read.has_its_offsets or known == read.fingerprint:
        return _Content()
    if now.trouble is not None:
        doubt = "was read, but nobody can tell if it is the file that was committed"
        told = _not_told(batch.manifest, file, [key.partition], doubt, now.trouble)
        return _Content(tuple(told), is_complete=False)
    is_as_committed = now.is_as_committed(file)
    if known is None:
        # 4: of changed bytes, the next look would take the wrong rows for the right ones.
        return _Content(taken={key: read.fingerprint} if is_as_committed else {})
    place = f"{BatchPath.of(batch.manifest.plan)}/{file.name}"
    cause = f"the rows in {place} are not what its first full read found:"
    cause += f" {'; '.join(known.differences(read.fingerprint))}."
    if is_as_committed:
        cause += " But its length and checksum are those of its commit: one of the two is wrong."
    [committed] = [each for each in file.slices if each.partition == read.partition]
    return _Content(
        (
            _finding(
                batch.manifest,
                file,
                read.partition,
                (committed.first_offset, committed.last_offset + 1),
                C1,
                Verdict.UNKNOWN if is_as_committed else Verdict.PROVEN_LOSS,
                cause,
                {
                    "fingerprint": _evidence(known),
                    "fingerprint_now": _evidence(read.fingerprint),
                    "taken_by": "the first full read",
                    **now.as_evidence(),
                },
            ),
        )
    )


def _of_runs(
    manifest: Manifest,
    file: LandedFile,
    read: ReadSlice,
    offsets: BoundedRuns,
    rule: Rule,
    verdict: Verdict,
    cause: str,
    among: str = "",
) -> Iterator[Finding]:
    """One finding for each run; one over all of them where they are too many to be named."""
    evidence: Mapping[str, object] = {"rows_now": _evidence(read.fingerprint)}
    place = (manifest, file, read.partition)
    if offsets.are_all_named:
        for run in offsets.runs:
            yield _finding(*place, run, rule, verdict, cause, evidence, among)
    elif offsets.first_offset is not None and offsets.last_offset is not None:
        reach = (offsets.first_offset, offsets.last_offset + 1)
        told = f"{cause} It is {offsets.count} of them, in {offsets.run_count} runs."
        evidence = {**offsets.as_evidence(), **evidence}
        yield _finding(*place, reach, rule, verdict, told, evidence, among)


def _of_unread_file(
    manifest: Manifest, file: LandedFile, read: ReadFile, now: StoredFile
) -> Iterator[Finding]:
    place, reason = f"{BatchPath.of(manifest.plan)}/{file.name}", read.failure or ""
    if not read.is_damaged:
        partitions = [each.partition for each in file.slices]
        doubt = "could not be read, which proves nothing about it"
        yield from _not_told(manifest, file, partitions, doubt, reason)
        return
    for each in file.slices:
        yield _finding(
            manifest,
            file,
            each.partition,
            (each.first_offset, each.last_offset + 1),
            C1,
            Verdict.PROVEN_LOSS,
            f"{place} can't be read any more: {reason}.",
            # Not the reason: whoever reads the same bytes may stumble over another page.
            now.as_evidence(),
        )


def _not_told(
    manifest: Manifest, file: LandedFile, partitions: Collection[int], doubt: str, reason: str
) -> Iterator[Finding]:
    """That nothing is proven of these slices, and why."""
    place = f"{BatchPath.of(manifest.plan)}/{file.name}"
    for each in file.slices:
        if each.partition in partitions:
            yield _finding(
                manifest,
                file,
                each.partition,
                (each.first_offset, each.last_offset + 1),
                U1,
                Verdict.UNKNOWN,
                f"{place} {doubt}: {reason}.",
                {"said": reason},
            )


def _finding(
    manifest: Manifest,
    file: LandedFile,
    partition: int,
    run: tuple[int, int],
    rule: Rule,
    verdict: Verdict,
    cause: str,
    evidence: Mapping[str, object],
    among: str = "",
) -> Finding:
    plan = manifest.plan
    next_step = _WITNESSES_DIFFER if (rule, verdict) == _UNDECIDED else _NEXT_STEPS[verdict]
    return Finding(
        rule=rule,
        verdict=verdict,
        level=Level.L3,
        feed=plan.feed,
        topic=plan.topic,
        generation=plan.ordinal,
        partition=partition,
        from_offset=run[0],
        until_offset=run[1],
        cause=cause,
        next_step=next_step.format(feed=plan.feed),
        evidence={"batch": plan.batch_id, "file": file.name, **evidence},
        # The file as a file may be told of too, for another reason, and ends otherwise.
        subject=f"{among or 'rows'} of {file.name}",
    )


_UNDECIDED: Final = (C1, Verdict.UNKNOWN)
_WITNESSES_DIFFER: Final = (
    "Compare its rows with the broker's while it has them: ./tallystick reconcile {feed} --level 4;"
    " or land them again: ./tallystick repair {feed} --dry-run"
)


_NEXT_STEPS = {
    Verdict.PROVEN_LOSS: (
        "See if the broker still has these offsets, and what a repair would do:"
        " ./tallystick repair {feed} --dry-run. Delete nothing."
    ),
    Verdict.PROVEN_DUP: (
        "Readers count them twice. See what a repair would do: ./tallystick repair {feed} --dry-run"
    ),
    Verdict.SUSPECTED: (
        "Find out who wrote the file. See what a repair would do:"
        " ./tallystick repair {feed} --dry-run"
    ),
    Verdict.UNKNOWN: "Read again when it answers: ./tallystick reconcile {feed} --level 3",
}


def _evidence(fingerprint: Fingerprint) -> Mapping[str, object]:
    return {
        "rows": fingerprint.record_count,
        "offset_sum": fingerprint.offset_sum,
        "hash_sums": list(fingerprint.hash_sums),
        "first_offset": fingerprint.first_offset,
        "last_offset": fingerprint.last_offset,
    }
