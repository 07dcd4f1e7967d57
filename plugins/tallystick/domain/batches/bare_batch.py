"""A batch's directory that has lost its manifest: the batch that the rows of its files make.

1. It claims, of each partition, what lies from its first row to its last one: nobody knows what it
   claimed beyond, and the next plan asks for that.
2. Each offset without a row needs a proven cause, as in every batch.
3. It is a repair where it holds rows of a file that another batch names and lacks.
4. Its log is the one on record at these places, or one that holds its last rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from tallystick.domain.batches.accounting import (
    RangeHoles,
    accounted,
    holes_in,
    problems_in,
    unexplained_in,
)
from tallystick.domain.batches.batch import Attempt, BatchPlan, CommittedFile, PlannedRange
from tallystick.domain.batches.directory_proof import offsets_of
from tallystick.domain.batches.landed import LandedFile, ReadBack
from tallystick.domain.batches.manifest import Manifest, TailAnchor
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.replacing import rows_of_file
from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.identities import AttemptId, FencingToken, GenerationId, Owner
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns

_OWNER: Final = Owner("ledger rebuild")
_NOT_YET: Final = GenerationId(0)
"""The ledger gives the generation its id when the batch is entered."""


@dataclass(frozen=True, slots=True)
class Life:
    """Which log a generation is."""

    cluster_id: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class BareBatch:
    """What can be said of the directory."""

    path: BatchPath
    plan: BatchPlan | None
    """None where nobody knows what it holds, or of which log."""
    manifest: Manifest | None
    """None where not every offset is accounted for."""
    reasons: tuple[str, ...]
    """Why it can't be entered; empty with a manifest."""


def lives_in(
    partitions: Iterable[int], ordinal: int, known: Mapping[tuple[int, int], Life]
) -> set[Life]:
    """The logs on record, by partition and ordinal, that the batch may be of."""
    return {life for each in partitions if (life := known.get((each, ordinal)))}


def plan_of_rows(path: BatchPath, topic: str, life: Life, found: ReadBack) -> BatchPlan:
    """The batch as its rows show it."""
    return BatchPlan(
        batch_id=path.batch_id,
        feed=path.feed,
        root=path.root,
        topic=topic,
        cluster_id=life.cluster_id,
        topic_id=life.topic_id,
        ordinal=path.ordinal,
        label=path.hour,
        window=None,
        ranges=tuple(
            PlannedRange(
                _NOT_YET,
                OffsetRange(
                    TopicPartition(topic, partition),
                    rows.from_offsets[0],
                    rows.until_offsets[-1],
                ),
            )
            for partition, rows in sorted(found.landed.items())
            if rows
        ),
    )


def batch_of_rows(
    path: BatchPath,
    plan: BatchPlan,
    found: ReadBack,
    causes: Mapping[int, Mapping[HoleClass, OffsetRuns]],
    anchors: Mapping[int, TailAnchor],
    *,
    attempt_id: AttemptId,
    isolation: Isolation,
) -> BareBatch:
    """The batch with its proof, or why there is none; `causes` are what a log says of its holes."""
    range_holes = holes_in(plan.ranges, found)
    reasons = (*problems_in(plan.ranges, found), *_unexplained(range_holes, causes))
    if reasons:
        return BareBatch(path, plan, None, reasons)
    ranges = tuple(
        accounted(
            each,
            causes.get(each.planned.offsets.partition.partition, {}),
            anchors.get(each.planned.offsets.partition.partition),
        )
        for each in range_holes
    )
    attempt = Attempt(attempt_id, plan.batch_id, FencingToken(1), _OWNER)
    return BareBatch(path, plan, Manifest(plan, attempt, isolation, ranges, found.files), ())


def replacing(bare: BareBatch, missing: Iterable[tuple[Manifest, LandedFile]]) -> BareBatch:
    """The batch as a repair, where it holds rows of files that other batches name and lack."""
    if bare.manifest is None:
        return bare
    rows = offsets_of(bare.manifest)
    files = tuple(
        CommittedFile(manifest.plan.batch_id, file.name)
        for manifest, file in missing
        if manifest.plan.ordinal == bare.path.ordinal
        and any(
            held.intersection(rows.get(place.partition, OffsetRuns()))
            for place, held in rows_of_file(manifest, file).items()
        )
    )
    plan = replace(bare.manifest.plan, replaces=files)
    return replace(bare, plan=plan, manifest=replace(bare.manifest, plan=plan))


def _unexplained(
    range_holes: Iterable[RangeHoles], causes: Mapping[int, Mapping[HoleClass, OffsetRuns]]
) -> Iterator[str]:
    for each in range_holes:
        partition = each.planned.offsets.partition
        rest = unexplained_in(each, causes.get(partition.partition, {}))
        if rest:
            yield (
                f"{partition}: {rest.count} offsets between its rows have no row, and no cause is"
                f" proven: {rest.described()}"
            )
