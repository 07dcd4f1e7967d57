"""Rows that readers would lose if a repair took the place of its files.

Either the repair does not claim them, for the log had begun after them already; or the cleaner has
removed them from the log since they were landed. A record of a transaction that was aborted is no
such row: a repair reads by the isolation of what it replaces, so it never was a reader's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns


@dataclass(frozen=True, slots=True)
class RowsGivenUp:
    """What one replaced file holds of one partition, and the repair does not; never nothing."""

    file: CommittedFile
    partition: TopicPartition
    unclaimed: OffsetRuns
    """Offsets that the repair does not cover."""
    cleaned: OffsetRuns
    """Offsets of the repair that are holes by now, because the log was compacted."""

    @property
    def offsets(self) -> tuple[OffsetRange, ...]:
        """All of them, as ranges."""
        runs = self.unclaimed.union(self.cleaned)
        return tuple(OffsetRange(self.partition, *each) for each in runs)


def rows_given_up(
    repair: Manifest, replaced: Mapping[BatchId, Manifest]
) -> tuple[RowsGivenUp, ...]:
    """By file and partition; empty when every row is landed again.

    `replaced` are the batches whose files give way, as they were committed.
    """
    return tuple(
        given_up
        for file in repair.plan.replaces
        if (old := replaced.get(file.batch_id))
        for landed in old.files
        if landed.name == file.name
        for given_up in _given_up(repair, old, landed)
    )


def _given_up(repair: Manifest, old: Manifest, landed: LandedFile) -> Iterator[RowsGivenUp]:
    for partition, rows in sorted(rows_of_file(old, landed).items()):
        left, cleaned = rows, OffsetRuns()
        for each in repair.ranges:
            if each.planned.offsets.partition == partition:
                offsets = each.planned.offsets
                left = left.difference(OffsetRuns.of([(offsets.from_offset, offsets.until_offset)]))
                holes = each.holes.get(HoleClass.COMPACTED, OffsetRuns())
                cleaned = cleaned.union(rows.intersection(holes))
        if left or cleaned:
            file = CommittedFile(old.plan.batch_id, landed.name)
            yield RowsGivenUp(file, partition, left, cleaned)


def rows_of_file(manifest: Manifest, file: LandedFile) -> dict[TopicPartition, OffsetRuns]:
    """The offsets with a row in the file, as it was committed."""
    found: dict[TopicPartition, OffsetRuns] = {}
    for held in file.slices:
        partition = TopicPartition(manifest.plan.topic, held.partition)
        rows = OffsetRuns.of([(held.first_offset, held.last_offset + 1)])
        for each in manifest.ranges:
            if each.planned.offsets.partition == partition:
                for holes in each.holes.values():
                    rows = rows.difference(holes)
        found[partition] = found.get(partition, OffsetRuns()).union(rows)
    return found


def spans_of(manifest: Manifest) -> dict[str, tuple[OffsetRange, ...]]:
    """By file, the offsets that it answers for: its rows, and the holes up to the next file's rows.

    Where no file has a row of a partition, the batch's first file answers for its holes. A file
    whose rows lie among another one's answers for its rows alone.
    """
    names = sorted(each.name for each in manifest.files)
    found: dict[str, list[OffsetRange]] = {each: [] for each in names}
    for accounted in manifest.ranges:
        whole = accounted.planned.offsets
        held = sorted(
            (each.first_offset, each.last_offset + 1, file.name)
            for file in manifest.files
            for each in file.slices
            if each.partition == whole.partition.partition
        )
        if not held:
            held = [(whole.from_offset, whole.until_offset, each) for each in names[:1]]
        for place, (first, until, name) in enumerate(held):
            start = first if place else whole.from_offset
            end = held[place + 1][0] if place + 1 < len(held) else whole.until_offset
            span = (start, end) if until <= end else (first, until)
            found[name].append(OffsetRange(whole.partition, *span))
    return {name: tuple(spans) for name, spans in found.items()}
