"""Level L0: what was read back from storage against what was planned, offset by offset.

1. rows + proven holes = span, for every planned range, or the batch is not proven.
2. An offset outside the plan, an offset twice, and a hole without a proven cause are problems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tallystick.domain.batches.batch import PlannedRange
from tallystick.domain.batches.landed import ReadBack
from tallystick.domain.batches.manifest import AccountedRange, TailAnchor
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.offsets.runs import OffsetRuns


@dataclass(frozen=True, slots=True)
class RangeHoles:
    """The offsets of one planned range that no landed row has; maybe none."""

    planned: PlannedRange
    landed: OffsetRuns
    holes: OffsetRuns


def holes_in(planned: Sequence[PlannedRange], found: ReadBack) -> tuple[RangeHoles, ...]:
    """Per planned range: what landed of it, and what did not."""
    answer = []
    for each in planned:
        offsets = each.offsets
        landed = found.landed.get(offsets.partition.partition, OffsetRuns())
        inside = landed.clipped(offsets.from_offset, offsets.until_offset)
        missing = landed.complement(offsets.from_offset, offsets.until_offset)
        answer.append(RangeHoles(each, inside, missing))
    return tuple(answer)


def problems_in(planned: Sequence[PlannedRange], found: ReadBack) -> tuple[str, ...]:
    """Offsets that are there twice or were never planned, in words; empty when all is well."""
    problems = [
        f"partition {partition}: offsets {runs.described()} are there more than once"
        for partition, runs in sorted(found.doubled.items())
        if runs
    ]
    ranges = {each.offsets.partition.partition: each.offsets for each in planned}
    for partition, landed in sorted(found.landed.items()):
        wanted = ranges.get(partition)
        foreign = landed.difference(_as_runs(wanted))
        if foreign:
            problems.append(
                f"partition {partition}: offsets {foreign.described()} were not planned"
            )
    return tuple(problems)


def unexplained_in(
    range_holes: RangeHoles, explained: Mapping[HoleClass, OffsetRuns]
) -> OffsetRuns:
    """The holes of a range for which no cause is proven."""
    rest = range_holes.holes
    for runs in explained.values():
        rest = rest.difference(runs)
    return rest


def accounted(
    range_holes: RangeHoles,
    explained: Mapping[HoleClass, OffsetRuns],
    anchor: TailAnchor | None,
    read_epoch: int | None = None,
) -> AccountedRange:
    """The range with every offset accounted for; ValueError if one is not."""
    return AccountedRange(
        planned=range_holes.planned,
        record_count=range_holes.landed.count,
        holes={kind: runs for kind, runs in explained.items() if runs},
        anchor=anchor,
        read_epoch=read_epoch,
    )


def _as_runs(offsets: OffsetRange | None) -> OffsetRuns:
    return OffsetRuns.of([(offsets.from_offset, offsets.until_offset)]) if offsets else OffsetRuns()
