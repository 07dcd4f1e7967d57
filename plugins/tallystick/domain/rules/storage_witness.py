"""What storage shows of committed files, by all rules that ask it: one function for each look.

1. Offsets first: what is missing is A8, what is there twice is B2, each with its exact intervals.
2. Where the offsets are right, the first full read gives the fingerprint; a later one that differs
   is C1. Where they are not, the fingerprint says nothing new, and none is taken.
3. A file that could not be read is a loss only if its bytes prove it; otherwise it is UNKNOWN.
4. A fingerprint is taken only of a file whose length and checksum are those of the commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from tallystick.domain.batches.directory_proof import offsets_of
from tallystick.domain.batches.landed import ReadBack
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.standing_batch import SliceKey, StandingBatch
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rows.scrub import ReadFile, ReadSlice
from tallystick.domain.rules.a8_committed_file_missing import (
    missing_file,
    missing_from_batch,
    missing_from_file,
)
from tallystick.domain.rules.b2_landed_twice import (
    doubled_in_batch,
    doubled_in_file,
    uncommitted_in_file,
)
from tallystick.domain.rules.c1_content_changed import (
    changed_file,
    changed_rows,
    damaged_file,
    uncommitted_in_batch,
)
from tallystick.domain.rules.file_findings import BatchRows, FileRows
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.u1_could_not_tell import ROWS_OF_UNKNOWN_FILE, unread_file, unread_rows


def missing_or_changed(
    manifest: Manifest, directory: str, stored: Mapping[str, StoredFile]
) -> Iterator[Finding]:
    """What is told of each slice of each file that is not as it was when it was committed.

    A file that could not be asked is UNKNOWN; its length may prove by itself that it has changed.
    """
    plan = manifest.plan
    for file in manifest.files:
        now, path = stored.get(file.name), f"{directory}/{file.name}"
        if now is None:
            yield from missing_file(plan, file, path)
        else:
            yield from unread_file(plan, file, path, now)
            yield from changed_file(plan, file, path, now)


def offset_findings(
    manifest: Manifest, gone: Collection[str], found: ReadBack
) -> Iterator[Finding]:
    """One finding for each run of offsets that has no row, more than one, or a row too many.

    `gone` are the files that repairs have replaced: neither they nor their offsets count.
    """
    wanted = offsets_of(manifest, gone)
    for partition in sorted({*wanted, *found.landed}):
        rows = BatchRows(manifest, partition)
        expected = wanted.get(partition, OffsetRuns())
        landed = found.landed.get(partition, OffsetRuns())
        yield from missing_from_batch(rows, expected.difference(landed))
        yield from doubled_in_batch(rows, found.doubled.get(partition, OffsetRuns()))
        yield from uncommitted_in_batch(rows, landed.difference(expected))


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


def judged(
    batch: StandingBatch, read: Mapping[str, ReadFile], stored: Mapping[str, StoredFile]
) -> BatchJudgement:
    """What the read of a batch's files means; `stored` are those that are there, as storage shows
    them at this same look.
    """
    plan = batch.manifest.plan
    findings: list[Finding] = []
    taken: dict[SliceKey, Fingerprint] = {}
    is_complete = is_as_committed = True
    for file in batch.files:
        found = read.get(file.name, ReadFile(file.name, failure="the scrub does not name it"))
        now = stored.get(file.name)
        is_as_committed = is_as_committed and now is not None and now.is_as_committed(file)
        if now is None:
            alone = replace(batch.manifest, files=(file,))
            findings += missing_or_changed(alone, str(BatchPath.of(plan)), stored)
        elif found.failure is not None:
            whole = [FileRows(plan, file, each.partition) for each in file.slices]
            findings += [
                damaged_file(rows, found.failure, now)
                if found.is_damaged
                else unread_rows(rows, found.failure)
                for rows in whole
            ]
            is_complete = is_complete and found.is_damaged
        else:
            for each in found.slices:
                rows = FileRows(plan, file, each.partition)
                findings += missing_from_file(rows, each)
                findings += doubled_in_file(rows, each)
                findings += uncommitted_in_file(rows, each)
                content = _of_content(batch, rows, each, now)
                findings += content.findings
                taken |= content.taken
                is_complete = is_complete and content.is_complete
    return BatchJudgement(tuple(findings), taken, is_complete, is_as_committed)


class _Content(NamedTuple):
    """What a slice's rows say, beside their offsets."""

    findings: tuple[Finding, ...] = ()
    taken: Mapping[SliceKey, Fingerprint] = MappingProxyType({})
    is_complete: bool = True


def _of_content(batch: StandingBatch, rows: FileRows, read: ReadSlice, now: StoredFile) -> _Content:
    """What the fingerprint says, once the offsets are right."""
    key = SliceKey(rows.file.name, rows.partition)
    known = batch.fingerprints.get(key)
    if not read.has_its_offsets or known == read.fingerprint:
        return _Content()
    if now.trouble is not None:
        return _Content((unread_rows(rows, now.trouble, ROWS_OF_UNKNOWN_FILE),), is_complete=False)
    if known is None:
        # 4: of changed bytes, the next look would take the wrong rows for the right ones.
        is_known_file = now.is_as_committed(rows.file)
        return _Content(taken={key: read.fingerprint} if is_known_file else {})
    return _Content((changed_rows(rows, known, read.fingerprint, now),))
