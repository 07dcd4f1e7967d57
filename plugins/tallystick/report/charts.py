"""The drawings of a report as plain numbers and words; `charts.html` makes SVG of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final, TypeVar

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.report.coverage_map import CoverageBlock, CoverageMap
from tallystick.domain.report.document import AgePart, BandPart, ColumnPart
from tallystick.domain.verdicts import Verdict
from tallystick.report.planes import (
    TALL,
    Label,
    Plot,
    Scale,
    Shape,
    box,
    scale_of,
    span_labels,
    time_labels,
)
from tallystick.report.wording import grouped, minute_text

T = TypeVar("T")

_VERDICTS: Final = tuple(Verdict)
_MOST_ROW_LABELS: Final = 8
_MOST_GRID_ROWS: Final = 32
_WIDE: Final = 1000
_BAR: Final = 0.86
"""Of a column's width."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPlot(Plot):
    """The map; its cells are told from `rows`, `columns` and `cells`, for they are many."""

    verdicts: str
    """All verdicts, parted by |, in the order of their places."""
    columns: str
    """Their edges, parted by |: one more than columns."""
    rows: str
    """Their partitions, parted by |."""
    cells: str
    """By row, parted by |: `verdict:count*columns`, parted by commas; the verdict's place."""
    offsets: str
    """By row, parted by |: where each column's offsets end, parted by commas; empty: not known."""
    grid: str
    """The borders of cells that are large enough for them."""
    is_low: bool
    """True for a few partitions, which need no tall drawing."""


def coverage_plot(found: CoverageMap) -> MapPlot:
    """The map; without any column or row an empty drawing."""
    columns, blocks = max(0, len(found.edges) - 1), found.blocks
    paths: defaultdict[Verdict, list[str]] = defaultdict(list)
    for row, block in enumerate(blocks):
        at = 0
        for verdict, run in groupby(block.verdicts):
            length = len(list(run))
            paths[verdict].append(box(at, row, length, 1))
            at += length
    shown = [each for each in _VERDICTS if each in paths]
    return MapPlot(
        wide=max(1, columns),
        tall=max(1, len(blocks)),
        shapes=tuple(Shape(each.value, "".join(paths[each])) for each in shown),
        values=_row_labels(blocks),
        times=time_labels(found.edges),
        told=(),
        legend=tuple((each.value, each.value) for each in shown),
        verdicts="|".join(each.value for each in _VERDICTS),
        columns="|".join(map(minute_text, found.edges)),
        rows="|".join(map(_partitions, blocks)),
        cells="|".join(map(_cells, blocks)),
        offsets="|".join(
            ",".join("" if each is None else str(each) for each in block.until_offsets)
            for block in blocks
        ),
        grid=_grid(columns, len(blocks)) if len(blocks) <= _MOST_GRID_ROWS else "",
        is_low=len(blocks) <= _MOST_ROW_LABELS,
    )


def _grid(columns: int, rows: int) -> str:
    down = (f"M{each} 0V{rows}" for each in range(1, columns))
    across = (f"M0 {each}H{columns}" for each in range(1, rows))
    return "".join([*down, *across])


def _row_labels(blocks: tuple[CoverageBlock, ...]) -> tuple[Label, ...]:
    """Each at the middle of its row."""
    stride = -(-len(blocks) // _MOST_ROW_LABELS) or 1
    return tuple(
        Label(_partitions(blocks[row]), 100 * (row + 0.5) / len(blocks))
        for row in range(0, len(blocks), stride)
    )


def _partitions(block: CoverageBlock) -> str:
    first, last = block.first_partition, block.last_partition
    return str(first) if first == last else f"{first}-{last}"


def _cells(block: CoverageBlock) -> str:
    told = groupby(zip(block.verdicts, block.counts, strict=True))
    return ",".join(
        f"{_VERDICTS.index(verdict)}:{count}*{len(list(run))}" for (verdict, count), run in told
    )


def band_plot(band: Sequence[BandPart]) -> Plot:
    """Log start, frontier, last stable offset and high watermark, each until the next look."""
    places = _places([each.looked_at for each in band])
    start = [each.log_start if each.is_whole else None for each in band]
    until = [each.high_watermark if each.is_whole else None for each in band]
    stable = [each.last_stable if each.is_whole else None for each in band]
    frontier = [each.frontier for each in band]
    scale = scale_of([*start, *until, *stable, *frontier], from_zero=False)
    lines = (
        ("log-start", "log start", start),
        ("last-stable", "last stable", stable),
        ("frontier", "frontier", frontier),
        ("high-watermark", "high watermark", until),
    )
    return Plot(
        wide=_WIDE,
        tall=TALL,
        shapes=(
            Shape("kept", _between(places, start, frontier, scale)),
            Shape("lag", _between(places, frontier, until, scale)),
            *(Shape(colour, _held(places, each, scale), is_line=True) for colour, _, each in lines),
        ),
        values=scale.labels,
        times=span_labels(band[0].looked_at, band[-1].looked_at) if band else (),
        told=tuple(_told_look(each) for each in band),
        legend=tuple((colour, name) for colour, name, _ in lines),
        places=places,
    )


def windows_plot(edges: Sequence[datetime], columns: Sequence[ColumnPart]) -> Plot:
    """Landed offsets as bars, produced ones as a line."""
    landed = [each.landed_offsets for each in columns]
    produced = [each.produced for each in columns]
    scale = scale_of([*landed, *produced], from_zero=True)
    return Plot(
        wide=max(1, len(columns)),
        tall=TALL,
        shapes=(
            Shape("landed", _bars([(0, each) for each in landed], scale)),
            Shape("produced", _steps(produced, scale), is_line=True),
        ),
        values=scale.labels,
        times=time_labels(edges),
        told=tuple(
            f"{_when(edges, place)}: produced"
            f" {'unknown' if each.produced is None else grouped(each.produced)},"
            f" landed {grouped(each.landed_offsets)} in {grouped(each.batches)} batches,"
            f" {grouped(each.landed_rows)} rows"
            for place, each in enumerate(columns)
        ),
        legend=(("landed", "landed"), ("produced", "produced")),
    )


def holes_plot(edges: Sequence[datetime], columns: Sequence[ColumnPart]) -> Plot:
    """Holes by class, one on top of the other."""
    kinds = [kind.value for kind in HoleClass]
    heights = [sum(each.holes.get(kind, 0) for kind in kinds) for each in columns]
    scale = scale_of(heights, from_zero=True)
    shapes, base = [], [0] * len(columns)
    for kind in kinds:
        top = [low + each.holes.get(kind, 0) for low, each in zip(base, columns, strict=True)]
        shapes.append(Shape(kind, _bars(zip(base, top, strict=True), scale)))
        base = top
    return Plot(
        wide=max(1, len(columns)),
        tall=TALL,
        shapes=tuple(shapes),
        values=scale.labels,
        times=time_labels(edges),
        told=tuple(
            f"{_when(edges, place)}: "
            + ", ".join(f"{grouped(each.holes.get(kind, 0))} {kind}" for kind in kinds)
            for place, each in enumerate(columns)
        ),
        legend=tuple((kind, kind) for kind in kinds),
    )


def _when(edges: Sequence[datetime], place: int) -> str:
    return f"{minute_text(edges[place])} to {minute_text(edges[place + 1])}"


def _told_look(each: BandPart) -> str:
    known = (
        f"log start {grouped(each.log_start)}, last stable {grouped(each.last_stable)},"
        f" high watermark {grouped(each.high_watermark)}"
        if each.is_whole
        else "a partition could not be asked"
    )
    frontier = "another log" if each.frontier is None else f"frontier {grouped(each.frontier)}"
    return f"{minute_text(each.looked_at)}: {frontier}, {known}"


def _bars(spans: Iterable[tuple[int, int]], scale: Scale) -> str:
    found = []
    for place, (low, high) in enumerate(spans):
        top = scale.height(high)
        found.append(box(place + (1 - _BAR) / 2, top, _BAR, scale.height(low) - top))
    return "".join(found)


def _steps(values: Sequence[int | None], scale: Scale) -> str:
    """A level for each column, joined where neighbours are known."""
    found, before = [], False
    for place, value in enumerate(values):
        if value is not None:
            height = scale.height(value)
            found.append(f"V{height}" if before else f"M{place} {height}")
            found.append(f"H{place + 1}")
        before = value is not None
    return "".join(found)


def _places(instants: Sequence[datetime]) -> tuple[int, ...]:
    """Of ascending instants, by time, on the width of a plane."""
    span = instants[-1] - instants[0] if instants else timedelta(0)
    return tuple(round(_WIDE * (each - instants[0]) / span) if span else 0 for each in instants)


def _held(places: Sequence[int], values: Sequence[int | None], scale: Scale) -> str:
    """Each level up to the next look, broken where one does not say."""
    return "".join(
        f"M{run[0][0]} {scale.height(run[0][1])}{_stairs(run[1:], scale) or 'h0'}"
        for run in _known(places, values)
    )


def _between(
    places: Sequence[int], lower: Sequence[int | None], upper: Sequence[int | None], scale: Scale
) -> str:
    """The area between two such lines, where both are known."""
    pairs = [
        None if low is None or high is None else (low, high)
        for low, high in zip(lower, upper, strict=True)
    ]
    found = []
    for run in _known(places, pairs):
        (first, (_, high)), (_, (end, _)) = run[0], run[-1]
        there = _stairs([(x, each) for x, (_, each) in run[1:]], scale)
        # The way back goes down a stair before it goes left.
        back = "".join(
            f"H{x}V{scale.height(before)}"
            for (x, _), (_, (before, _)) in zip(run[:0:-1], run[-2::-1], strict=True)
        )
        found.append(f"M{first} {scale.height(high)}{there}V{scale.height(end)}{back}H{first}z")
    return "".join(found)


def _stairs(points: Iterable[tuple[int, int]], scale: Scale) -> str:
    return "".join(f"H{x}V{scale.height(value)}" for x, value in points)


def _known(places: Sequence[int], values: Sequence[T | None]) -> Iterator[list[tuple[int, T]]]:
    """Runs of neighbours that are known, each with its place from left to right."""
    run: list[tuple[int, T]] = []
    for place, value in zip(places, values, strict=True):
        if value is not None:
            run.append((place, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


@dataclass(frozen=True, slots=True)
class AgeRow:
    """Batches by level whose last look is so long ago."""

    name: str
    batches: tuple[int, ...]
    """Of each level, in the order of `Drawn.levels`."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The drawings."""

    taken_at: datetime
    coverage: MapPlot
    band: Plot
    windows: Plot
    holes: Plot
    levels: tuple[str, ...]
    ages: tuple[AgeRow, ...]
    """The youngest first; those that were never looked at last."""
    most_batches: int
    """The largest number in `ages`."""


def drawn(
    taken_at: datetime,
    coverage: CoverageMap,
    columns: Sequence[ColumnPart],
    band: Sequence[BandPart],
    ages: Sequence[AgePart],
) -> Drawn:
    """These parts of a report, drawn."""
    levels = tuple(dict.fromkeys(each.level for each in ages))
    counts = {(each.from_seconds, each.level): each.batches for each in ages}
    names = {each.from_seconds: _age(each) for each in ages}
    youngest_first = sorted(names, key=lambda each: float("inf") if each is None else each)
    return Drawn(
        taken_at=taken_at,
        coverage=coverage_plot(coverage),
        band=band_plot(band),
        windows=windows_plot(coverage.edges, columns),
        holes=holes_plot(coverage.edges, columns),
        levels=levels,
        ages=tuple(
            AgeRow(names[age], tuple(counts.get((age, level), 0) for level in levels))
            for age in youngest_first
        ),
        most_batches=max(counts.values(), default=0),
    )


def _age(part: AgePart) -> str:
    if part.from_seconds is None:
        return "never"
    if part.until_seconds is None:
        return f"over {_long(part.from_seconds)}"
    return f"under {_long(part.until_seconds)}"


def _long(seconds: int) -> str:
    return f"{seconds // 86_400} d" if seconds >= 86_400 else f"{seconds // 3_600} h"
