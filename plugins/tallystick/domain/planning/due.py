"""Which offsets a run lands, and in which batches: planned = wanted - accounted, cut to the
budgets.

1. A planned range never leaves [frontier, readable_until), nor overlaps a range of the ledger.
2. Without a budget in the way, every wanted offset is planned; a gap is as wanted as a tail.
3. A batch holds at most one range per partition, and only generations of one ordinal.
4. While something is wanted, at least one offset is planned.
5. A batch holds offsets of one window; batches of older windows come first.
6. Budgets count what may have a record: offsets before the first batch that the log still holds are
   planned with the records behind them, however many they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from tallystick.domain.batches.batch import PlannedRange
from tallystick.domain.batches.states import Isolation
from tallystick.domain.logs.generation import GenerationAccount, GenerationState
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange, offset_range, subtract
from tallystick.domain.planning.window_cuts import WindowPiece
from tallystick.domain.window import Window

MOST_BATCHES: Final = 1000
"""As many batches as one run carries out at most, where nothing says less: what is claimed must be
carried out by the same run, or adopted. Airflow's bound on mapped tasks may be lower.
"""


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """The budgets of a feed; all at least 1."""

    max_records_per_run: int
    max_records_per_batch: int
    max_partitions_per_batch: int
    max_batches_per_run: int = MOST_BATCHES

    def __post_init__(self) -> None:
        smallest = min(
            self.max_records_per_run,
            self.max_records_per_batch,
            self.max_partitions_per_batch,
            self.max_batches_per_run,
        )
        if smallest < 1:
            raise ValueError(f"{self}: every limit is at least 1")


@dataclass(frozen=True, slots=True)
class DueOffsets:
    """What one run may land, before it is cut into windows and batches."""

    ranges: tuple[PlannedRange, ...]
    """Within the run's budget; of each partition the oldest, ascending."""
    wanted: int
    """Offsets that are readable, due, and not accounted for."""
    first_batches: Mapping[int, int] = field(default_factory=dict)
    """By partition, as far as asked: where the first batch begins that the log holds of them."""

    def by_partition(self) -> dict[int, list[OffsetRange]]:
        """The ranges of each partition, ascending."""
        found: defaultdict[int, list[OffsetRange]] = defaultdict(list)
        for each in self.ranges:
            found[each.offsets.partition.partition].append(each.offsets)
        return dict(found)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What one run lands: per batch its ordinal and its ranges; and what the limits left out."""

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
    window: Window | None = None
    """The records' own window; None where they go under the run's."""


def wanted_offsets(
    generations: Mapping[int, GenerationAccount],
    snapshot: BrokerSnapshot,
    *,
    isolation: Isolation,
    cuts: Mapping[int, int | None] | None,
) -> Sequence[PlannedRange]:
    """What is due, whatever the budgets; of each partition the lowest offsets first.

    `cuts` are the first offsets at or after the window's end, by partition; None as a value means
    that no record is as late, so everything readable is due. None instead of a mapping means that
    no window limits the run.
    """
    return [
        gap
        for account in generations.values()
        for gap in _wanted(account, snapshot, isolation, cuts)
    ]


def beyond_budgets(wanted: Sequence[PlannedRange], limits: PlanLimits) -> Mapping[int, int]:
    """The first wanted offset of each partition that takes more than its share of a budget.

    There it counts how many of them may have a record.
    """
    need = _needs(wanted, {})
    first: dict[int, int] = {}
    share = limits.max_records_per_run // max(1, len(need))
    most = min(limits.max_records_per_batch, share)
    for each in wanted:
        partition = each.offsets.partition.partition
        if need[partition] > most:
            first.setdefault(partition, each.offsets.from_offset)
    is_cut = sum(need.values()) > limits.max_records_per_run
    is_split = any(each > limits.max_records_per_batch for each in need.values())
    return first if is_cut or is_split else {}


def due_offsets(
    wanted: Sequence[PlannedRange],
    limits: PlanLimits,
    first_batches: Mapping[int, int] | None = None,
) -> DueOffsets:
    """How much of what is wanted one run may land."""
    known = first_batches or {}
    total = sum(each.offsets.span for each in wanted)
    ranges = _within_budget(wanted, limits.max_records_per_run, known)
    return DueOffsets(tuple(ranges), total, known)


def plan_run(
    generations: Mapping[int, GenerationAccount],
    due: DueOffsets,
    *,
    limits: PlanLimits,
    groups: Mapping[int, int] | None = None,
    pieces: Sequence[WindowPiece] | None = None,
    adopted: int = 0,
) -> RunPlan:
    """The batches of one run: with those that it has adopted no more than it can carry out.

    With `pieces` each batch is of one of these windows, and offsets that are in none are left to
    the next run. Partitions with different `groups` numbers don't share a batch.
    """
    together: defaultdict[tuple[int, int, int], list[PlannedRange]] = defaultdict(list)
    for place, each in _by_window(due.ranges, pieces):
        partition = each.offsets.partition.partition
        group = groups.get(partition, 0) if groups else 0
        together[place, generations[partition].ordinal, group].append(each)
    batches = (
        DraftBatch(ordinal, ranges, pieces[place].window if pieces else None)
        for place, ordinal, group in sorted(together)
        for ranges in _in_batches(together[place, ordinal, group], limits, due.first_batches)
    )
    room = max(limits.max_batches_per_run - adopted, 0)
    return RunPlan(tuple(islice(batches, room)), due.wanted)


def _by_window(
    ranges: Sequence[PlannedRange], pieces: Sequence[WindowPiece] | None
) -> Iterator[tuple[int, PlannedRange]]:
    """The ranges cut at the windows' ends, each with its window's place; 0 without windows."""
    if pieces is None:
        yield from ((0, each) for each in ranges)
        return
    ends: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for place, piece in enumerate(pieces):
        for partition, until in piece.until.items():
            ends[partition].append((place, until))
    for each in ranges:
        position = each.offsets.from_offset
        for place, until in ends[each.offsets.partition.partition]:
            offsets = each.offsets.clipped(position, until)
            if offsets:
                yield place, PlannedRange(each.generation_id, offsets)
                position = until


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
    if not snapshot.is_of(account):
        return
    until = bounds.readable_until(isolation)
    cut = cuts.get(account.partition.partition) if cuts is not None else None
    if cut is not None:
        until = min(until, cut)
    due = offset_range(account.partition, max(account.frontier, bounds.log_start_offset), until)
    if due:
        for gap in subtract(due, account.beyond):
            yield PlannedRange(account.generation_id, gap)


def _to_read(offsets: OffsetRange, first_batches: Mapping[int, int]) -> int:
    """How many of the offsets may have a record."""
    first = first_batches.get(offsets.partition.partition, offsets.from_offset)
    return max(0, offsets.until_offset - max(first, offsets.from_offset))


def _needs(
    wanted: Sequence[PlannedRange], first_batches: Mapping[int, int]
) -> defaultdict[int, int]:
    need: defaultdict[int, int] = defaultdict(int)
    for each in wanted:
        need[each.offsets.partition.partition] += _to_read(each.offsets, first_batches)
    return need


def _within_budget(
    wanted: Sequence[PlannedRange], budget: int, first_batches: Mapping[int, int]
) -> list[PlannedRange]:
    """The same ranges, cut to the budget: every partition gets its oldest offsets.

    The budget is shared evenly; what a small partition doesn't need goes to the larger ones. Where
    the budget is smaller than the number of partitions, the largest backlogs come first, so that no
    partition waits for ever.
    """
    need = _needs(wanted, first_batches)
    if sum(need.values()) <= budget:
        return list(wanted)
    share = _even_shares(need, budget)
    cut: list[PlannedRange] = []
    for each in wanted:
        partition = each.offsets.partition.partition
        to_read = _to_read(each.offsets, first_batches)
        taken = min(to_read, share[partition])
        share[partition] -= taken
        piece = each.offsets.clipped(0, each.offsets.until_offset - to_read + taken)
        if piece and (taken or not to_read):
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
    ranges: Sequence[PlannedRange], limits: PlanLimits, first_batches: Mapping[int, int]
) -> Iterator[tuple[PlannedRange, ...]]:
    """The ranges in batches, oldest offsets of every partition first; big ones are split."""
    layers: defaultdict[int, list[PlannedRange]] = defaultdict(list)
    seen: defaultdict[int, int] = defaultdict(int)
    for each in ranges:
        partition = each.offsets.partition.partition
        for piece in _pieces(each, limits.max_records_per_batch, first_batches):
            layers[seen[partition]].append(piece)
            seen[partition] += 1
    for depth in sorted(layers):
        yield from _filled(layers[depth], limits, first_batches)


def _pieces(
    planned: PlannedRange, most: int, first_batches: Mapping[int, int]
) -> Iterator[PlannedRange]:
    offsets = planned.offsets
    start, until = offsets.from_offset, offsets.until_offset - _to_read(offsets, first_batches)
    while start < offsets.until_offset:
        until = min(until + most, offsets.until_offset)
        yield PlannedRange(planned.generation_id, OffsetRange(offsets.partition, start, until))
        start = until


def _filled(
    layer: Sequence[PlannedRange], limits: PlanLimits, first_batches: Mapping[int, int]
) -> Iterator[tuple[PlannedRange, ...]]:
    """Batches within both limits, in the layer's order: one range per partition, never none."""
    batch: list[PlannedRange] = []
    span = 0
    for each in layer:
        is_full = len(batch) >= limits.max_partitions_per_batch
        to_read = _to_read(each.offsets, first_batches)
        if batch and (is_full or span + to_read > limits.max_records_per_batch):
            yield tuple(batch)
            batch, span = [], 0
        batch.append(each)
        span += to_read
    yield tuple(batch)
