"""Level L3: what a full read of landed files says about batches, against what was committed.

1. Offsets first: what is missing is A8, what is there twice is B2, each with its exact intervals.
2. Where the offsets are right, the first full read gives the fingerprint; a later one that differs
   is C1. Where they are not, the fingerprint says nothing new, and none is taken.
3. A file that could not be read is a loss only if its bytes prove it; otherwise it is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from tallystick.domain.findings import Finding, FindingCode, Level
from tallystick.domain.fingerprint import Fingerprint
from tallystick.domain.identities import BatchId
from tallystick.domain.landed import LandedFile
from tallystick.domain.manifest import Manifest
from tallystick.domain.paths import BatchPath
from tallystick.domain.runs import OffsetRuns
from tallystick.domain.scrub import BoundedRuns, ExpectedSlice, ReadFile, ReadSlice, ScrubFile
from tallystick.domain.states import Verdict


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

    @property
    def is_clean(self) -> bool:
        """True when every file was read and nothing was found."""
        return self.is_complete and not self.findings


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


def judged(
    batch: StandingBatch, read: Mapping[str, ReadFile], absent: frozenset[str]
) -> BatchJudgement:
    """What the read of a batch's files means; `absent` are files that storage says are gone."""
    findings: list[Finding] = []
    taken: dict[SliceKey, Fingerprint] = {}
    is_complete = True
    for file in batch.files:
        found = read.get(file.name, ReadFile(file.name, failure="the scrub does not name it"))
        if file.name in absent:
            findings += _of_missing_file(batch.manifest, file)
        elif found.failure is not None:
            findings += _of_unread_file(batch.manifest, file, found)
            is_complete = is_complete and found.is_damaged
        else:
            for each in found.slices:
                findings += _of_slice(batch, file, each)
                key = SliceKey(file.name, each.partition)
                if each.has_its_offsets and key not in batch.fingerprints:
                    taken[key] = each.fingerprint
    return BatchJudgement(tuple(findings), taken, is_complete)


def _of_slice(batch: StandingBatch, file: LandedFile, read: ReadSlice) -> Iterator[Finding]:
    place = f"{BatchPath.of(batch.manifest.plan)}/{file.name}"
    yield from _of_runs(
        batch.manifest,
        file,
        read.partition,
        read.missing,
        FindingCode.PHANTOM_COMMIT,
        Verdict.PROVEN_LOSS,
        f"committed rows are not in storage: {place} has no row of these offsets.",
    )
    yield from _of_runs(
        batch.manifest,
        file,
        read.partition,
        read.doubled,
        FindingCode.LANDED_TWICE,
        Verdict.PROVEN_DUP,
        f"{place} has more than one row of each of these offsets.",
    )
    yield from _of_runs(
        batch.manifest,
        file,
        read.partition,
        read.foreign,
        FindingCode.LANDED_TWICE,
        Verdict.SUSPECTED,
        f"{place} has rows of these offsets, which were not committed with it: another file holds"
        " them too, or nobody has ever proven them.",
        subject=file.name,
    )
    known = batch.fingerprints.get(SliceKey(file.name, read.partition))
    if known is None or not read.has_its_offsets:
        return
    differences = known.differences(read.fingerprint)
    if differences:
        [committed] = [each for each in file.slices if each.partition == read.partition]
        yield _finding(
            batch.manifest,
            file,
            read.partition,
            (committed.first_offset, committed.last_offset + 1),
            FindingCode.CONTENT_CHANGED,
            Verdict.PROVEN_LOSS,
            f"the rows in {place} are not what its first full read found:"
            f" {'; '.join(differences)}.",
            {
                "fingerprint": _evidence(known),
                "fingerprint_now": _evidence(read.fingerprint),
                "taken_by": "the first full read",
            },
        )


def _of_runs(
    manifest: Manifest,
    file: LandedFile,
    partition: int,
    offsets: BoundedRuns,
    code: FindingCode,
    verdict: Verdict,
    cause: str,
    subject: str = "",
) -> Iterator[Finding]:
    """One finding for each run; one over all of them where they are too many to be named."""
    totals = {"offsets": offsets.count, "runs": offsets.run_count}
    if offsets.are_all_named:
        for run in offsets.runs:
            yield _finding(manifest, file, partition, run, code, verdict, cause, totals, subject)
    elif offsets.first_offset is not None and offsets.last_offset is not None:
        reach = (offsets.first_offset, offsets.last_offset + 1)
        named = {"first_runs": [list(run) for run in offsets.runs]}
        told = f"{cause} It is {offsets.count} of them, in {offsets.run_count} runs."
        evidence = totals | named
        yield _finding(manifest, file, partition, reach, code, verdict, told, evidence, subject)


def _of_missing_file(manifest: Manifest, file: LandedFile) -> Iterator[Finding]:
    yield from _per_slice(
        manifest,
        file,
        FindingCode.PHANTOM_COMMIT,
        Verdict.PROVEN_LOSS,
        f"committed rows are not in storage: {BatchPath.of(manifest.plan)}/{file.name} is missing.",
        {},
    )


def _of_unread_file(manifest: Manifest, file: LandedFile, read: ReadFile) -> Iterator[Finding]:
    place, reason = f"{BatchPath.of(manifest.plan)}/{file.name}", read.failure or ""
    if read.is_damaged:
        yield from _per_slice(
            manifest,
            file,
            FindingCode.CONTENT_CHANGED,
            Verdict.PROVEN_LOSS,
            f"{place} can't be read any more: {reason}.",
            {"reason": reason},
        )
    else:
        yield from _per_slice(
            manifest,
            file,
            FindingCode.COULD_NOT_TELL,
            Verdict.UNKNOWN,
            f"{place} could not be read, which proves nothing about it: {reason}.",
            {"reason": reason},
        )


def _per_slice(
    manifest: Manifest,
    file: LandedFile,
    code: FindingCode,
    verdict: Verdict,
    cause: str,
    evidence: Mapping[str, object],
) -> Iterator[Finding]:
    for each in file.slices:
        run = (each.first_offset, each.last_offset + 1)
        yield _finding(manifest, file, each.partition, run, code, verdict, cause, evidence)


def _finding(
    manifest: Manifest,
    file: LandedFile,
    partition: int,
    run: tuple[int, int],
    code: FindingCode,
    verdict: Verdict,
    cause: str,
    evidence: Mapping[str, object],
    subject: str = "",
) -> Finding:
    plan = manifest.plan
    return Finding(
        code=code,
        verdict=verdict,
        level=Level.L3,
        feed=plan.feed,
        topic=plan.topic,
        generation=plan.ordinal,
        partition=partition,
        from_offset=run[0],
        until_offset=run[1],
        cause=cause,
        next_step=_NEXT_STEPS[verdict].format(feed=plan.feed),
        evidence={"batch": plan.batch_id, "file": file.name, **evidence},
        subject=subject,
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
