"""Which offsets a run lands, and in which batches: planned = wanted - accounted, cut to the
budgets.

1. A planned range never leaves [frontier, readable_until), nor overlaps a range of the ledger.
2. Without a budget in the way, every wanted offset is planned; a gap is as wanted as a tail.
3. A batch holds at most one range per partition, and only generations of one ordinal.
4. While something is wanted, at least one offset is planned.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tallystick.domain.batch import PlannedRange
from tallystick.domain.generation import GenerationAccount, GenerationState
from tallystick.domain.ranges import OffsetRange, offset_range, subtract
from tallystick.domain.snapshot import BrokerSnapshot
from tallystick.domain.states import Isolation


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """The budgets of a feed; all at least 1."""

    max_records_per_run: int
    max_records_per_batch: int
    max_partitions_per_batch: int

    def __post_init__(self) -> None:
        smallest = min(
            self.max_records_per_run, self.max_records_per_batch, self.max_partitions_per_batch
        )
        if smallest < 1:
            raise ValueError(f"{self}: every limit is at least 1")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What one run lands: per batch its ordinal and its ranges; and what the budget left out."""

    batches: tuple[DraftBatch, ...]
    wanted: int
    """Offsets that are readable, due, and not accounted for."""

    @property
    def planned(self) -> int:
        """Offsets in all batches; at most `wanted`."""
        return sum(each.offsets.span for batch in self.batches for each in batch.ranges)


@dataclass(frozen=True, slots=True)
class DraftBatch:
    """A batch before it has a name."""

    ordinal: int
    ranges: tuple[PlannedRange, ...]


def plan_run(
    generations: Mapping[int, GenerationAccount],
    snapshot: BrokerSnapshot,
    *,
    isolation: Isolation,
    cuts: Mapping[int, int | None] | None,
    limits: PlanLimits,
    groups: Mapping[int, int] | None = None,
) -> RunPlan:
    """The batches of one run.

    `cuts` are the first offsets at or after the window's end, by partition; None as a value means
    that no record is as late, so everything readable is due. None instead of a mapping means that
    no window limits the run. Partitions with different `groups` numbers don't share a batch.
    """
    wanted = [
        gap
        for account in generations.values()
        for gap in _wanted(account, snapshot, isolation, cuts)
    ]
    total = sum(each.offsets.span for each in wanted)
    allotted = _within_budget(wanted, limits.max_records_per_run)
    together: defaultdict[tuple[int, int], list[PlannedRange]] = defaultdict(list)
    for each in allotted:
        partition = each.offsets.partition.partition
        group = groups.get(partition, 0) if groups else 0
        together[generations[partition].ordinal, group].append(each)
    batches = tuple(
        DraftBatch(ordinal, ranges)
        for ordinal, group in sorted(together)
        for ranges in _in_batches(together[ordinal, group], limits)
    )
    return RunPlan(batches, total)


def _wanted(
    account: GenerationAccount,
    snapshot: BrokerSnapshot,
    isolation: Isolation,
    cuts: Mapping[int, int | None] | None,
) -> Iterator[PlannedRange]:
    """The offsets of one generation that are due and that nobody has; lowest first."""
    bounds = snapshot.partitions.get(account.partition.partition)
    if account.state is not GenerationState.OPEN or bounds is None:
        return
    if account.topic_id != snapshot.topic_id:
        return
    until = bounds.readable_until(isolation)
    cut = cuts.get(account.partition.partition) if cuts is not None else None
    if cut is not None:
        until = min(until, cut)
    due = offset_range(account.partition, max(account.frontier, bounds.log_start_offset), until)
    if due:
        for gap in subtract(due, account.beyond):
            yield PlannedRange(account.generation_id, gap)


def _within_budget(wanted: Sequence[PlannedRange], budget: int) -> list[PlannedRange]:
    """The same ranges, cut to the budget: every partition gets its oldest offsets.

    The budget is shared evenly; what a small partition doesn't need goes to the larger ones. Where
    the budget is smaller than the number of partitions, the largest backlogs come first, so that no
    partition waits for ever.
    """
    need: defaultdict[int, int] = defaultdict(int)
    for each in wanted:
        need[each.offsets.partition.partition] += each.offsets.span
    if sum(need.values()) <= budget:
        return list(wanted)
    share = _even_shares(need, budget)
    cut: list[PlannedRange] = []
    for each in wanted:
        partition = each.offsets.partition.partition
        taken = min(each.offsets.span, share[partition])
        share[partition] -= taken
        piece = each.offsets.clipped(0, each.offsets.from_offset + taken)
        if piece:
            cut.append(PlannedRange(each.generation_id, piece))
    return cut


def _even_shares(need: Mapping[int, int], budget: int) -> dict[int, int]:
    """Shares that add up to the budget, none above its need, the smallest needs met first."""
    share: dict[int, int] = {}
    left = budget
    # Ascending need; among equals, and for the last odd units, the higher partition number is
    # served later. With less than one unit each, the integer division gives 0 to the smallest
    # backlogs.
    waiting = sorted(need, key=lambda partition: (need[partition], partition))
    for index, partition in enumerate(waiting):
        share[partition] = min(need[partition], left // (len(waiting) - index))
        left -= share[partition]
    return share


def _in_batches(
    ranges: Sequence[PlannedRange], limits: PlanLimits
) -> Iterator[tuple[PlannedRange, ...]]:
    """The ranges in batches, oldest offsets of every partition first; big ones are split."""
    layers: defaultdict[int, list[PlannedRange]] = defaultdict(list)
    seen: defaultdict[int, int] = defaultdict(int)
    for each in ranges:
        partition = each.offsets.partition.partition
        for piece in _pieces(each.offsets, limits.max_records_per_batch):
            layers[seen[partition]].append(PlannedRange(each.generation_id, piece))
            seen[partition] += 1
    for depth in sorted(layers):
        yield from _filled(layers[depth], limits)


def _pieces(offsets: OffsetRange, most: int) -> Iterator[OffsetRange]:
    for start in range(offsets.from_offset, offsets.until_offset, most):
        yield OffsetRange(offsets.partition, start, min(start + most, offsets.until_offset))


def _filled(
    layer: Sequence[PlannedRange], limits: PlanLimits
) -> Iterator[tuple[PlannedRange, ...]]:
    """Batches within both limits, in the layer's order: one range per partition, never none."""
    batch: list[PlannedRange] = []
    span = 0
    for each in layer:
        is_full = len(batch) >= limits.max_partitions_per_batch
        if batch and (is_full or span + each.offsets.span > limits.max_records_per_batch):
            yield tuple(batch)
            batch, span = [], 0
        batch.append(each)
        span += each.offsets.span
    yield tuple(batch)
