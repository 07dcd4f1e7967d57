"""What a published directory's files prove of its manifest, when nobody else can vouch for it.

1. Every file that the manifest names, but for those that a repair has replaced, holds exactly the
   offsets that the manifest says.
2. A file with another length or checksum is told; its batch counts all the same, if every offset of
   the directory is proven by reading.
3. What a repair has replaced may be there or not, and whole or damaged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from tallystick.domain.batches.landed import FileSlice, LandedFile, ReadBack
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.offsets.runs import OffsetRuns


@dataclass(frozen=True, slots=True)
class DirectoryLook:
    """What lies in a directory, as far as readers would read it."""

    lengths: Mapping[str, int]
    checksums: Mapping[str, str]
    """Of the files that have one."""
    found: ReadBack | None
    """None where something lies there that is no landed file, so that nothing could be counted."""


@dataclass(frozen=True, slots=True)
class DirectoryProof:
    """If the manifest's offsets are there, exactly; and what else is to be told."""

    problems: tuple[str, ...]
    """Empty when every offset is proven."""
    notes: tuple[str, ...]
    """What differs, and leaves the offsets proven."""

    @property
    def is_proven(self) -> bool:
        """True when the batch may be entered."""
        return not self.problems


def proof_of(manifest: Manifest, gone: Collection[str], look: DirectoryLook) -> DirectoryProof:
    """The directory against its manifest; `gone` are the files that repairs have replaced."""
    kept = [each for each in manifest.files if each.name not in gone]
    is_exact = look.found is not None and set(look.lengths) <= {each.name for each in kept}
    problems: list[str] = []
    notes: list[str] = []
    for file in kept:
        unlike = _unlike(file, look)
        if file.name not in look.lengths:
            # A file without a row may be missing: no offset is.
            (problems if file.slices else notes).append(f"{file.name} is missing")
        elif look.found and is_exact and not _holds_the_same(file, look.found):
            problems.append(f"{file.name} holds other offsets than the manifest says")
        elif unlike:
            words = f"{file.name} {unlike}"
            if is_exact:
                notes.append(f"{words}; its offsets are as the manifest says")
            else:
                problems.append(f"{words}, and it can't be told what it holds")
    named = {each.name for each in manifest.files}
    notes += [f"{each} is in no manifest" for each in sorted(look.lengths) if each not in named]
    if look.found and is_exact and not problems:
        problems += _differences(manifest, gone, look.found)
    return DirectoryProof(tuple(problems), tuple(notes))


def offsets_of(manifest: Manifest, gone: Collection[str] = ()) -> dict[int, OffsetRuns]:
    """The offsets with a row in the batch's files, by partition, without those of `gone`."""
    taken: dict[int, list[tuple[int, int]]] = {}
    for file in manifest.files:
        for each in file.slices if file.name in gone else ():
            taken.setdefault(each.partition, []).append((each.first_offset, each.last_offset + 1))
    found: dict[int, OffsetRuns] = {}
    for accounted in manifest.ranges:
        offsets = accounted.planned.offsets
        partition = offsets.partition.partition
        rows = OffsetRuns.of([(offsets.from_offset, offsets.until_offset)])
        for holes in (*accounted.holes.values(), OffsetRuns.of(taken.get(partition, ()))):
            rows = rows.difference(holes)
        if rows:
            found[partition] = rows
    return found


def _unlike(file: LandedFile, look: DirectoryLook) -> str | None:
    length = look.lengths.get(file.name)
    if length != file.length_bytes:
        return f"has {length} bytes, {file.length_bytes} were committed"
    checksum = look.checksums.get(file.name)
    if checksum != file.checksum:
        return f"has checksum {checksum}, {file.checksum} was committed"
    return None


def _holds_the_same(file: LandedFile, found: ReadBack) -> bool:
    return any(
        each.name == file.name and _sorted(each) == _sorted(file) for each in found.files
    )  # fmt: skip


def _sorted(file: LandedFile) -> list[FileSlice]:
    return sorted(file.slices, key=lambda each: each.partition)


def _differences(manifest: Manifest, gone: Collection[str], found: ReadBack) -> Iterator[str]:
    wanted = offsets_of(manifest, gone)
    for partition in sorted({*wanted, *found.landed}):
        expected = wanted.get(partition, OffsetRuns())
        landed = found.landed.get(partition, OffsetRuns())
        place = f"{manifest.plan.topic}-{partition}"
        missing, more = expected.difference(landed), landed.difference(expected)
        if missing:
            yield f"{place}: {missing.count} offsets have no row: {missing.described()}"
        if more:
            yield f"{place}: {more.count} rows are not the manifest's: {more.described()}"
    for partition, twice in sorted(found.doubled.items()):
        if twice:
            place = f"{manifest.plan.topic}-{partition}"
            yield f"{place}: {twice.count} offsets are there twice: {twice.described()}"
