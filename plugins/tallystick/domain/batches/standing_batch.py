"""A committed batch with the files of it that still stand: what a full read is told, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rows.scrub import ExpectedSlice, ScrubFile


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
