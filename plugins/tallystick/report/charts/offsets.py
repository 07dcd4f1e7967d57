"""Offsets over time as drawings: the frontier's band, what was produced and landed, the holes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, TypeVar

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.report.document import BandPart, ColumnPart
from tallystick.report.charts.plot import (
    TALL,
    Plot,
    Scale,
    Shape,
    box,
    minute_text,
    scale_of,
    time_labels,
)
from tallystick.report.wording import grouped

T = TypeVar("T")

_WIDE: Final = 1000
_BAR: Final = 0.86
"""Of a column's width."""


def band_plot(band: Sequence[BandPart]) -> Plot:
    """Log start, frontier, last stable offset and high watermark, look by look."""
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
            Shape("kept", _between(start, frontier, scale)),
            Shape("lag", _between(frontier, until, scale)),
            *(Shape(colour, _line(each, scale), is_line=True) for colour, _, each in lines),
        ),
        values=scale.labels,
        times=time_labels([each.looked_at for each in band]),
        told=tuple(_told_look(each) for each in band),
        legend=tuple((colour, name) for colour, name, _ in lines),
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


def _line(values: Sequence[int | None], scale: Scale) -> str:
    """Straight from look to look, broken where one does not say."""
    return "".join(
        f"M{_points(run, scale)}" + ("" if len(run) > 1 else "h0") for run in _known(values)
    )


def _between(lower: Sequence[int | None], upper: Sequence[int | None], scale: Scale) -> str:
    """The area between two lines, where both are known."""
    pairs = [
        None if low is None or high is None else (low, high)
        for low, high in zip(lower, upper, strict=True)
    ]
    found = []
    for run in _known(pairs):
        there = _points([(x, high) for x, (_, high) in run], scale)
        back = _points([(x, low) for x, (low, _) in reversed(run)], scale)
        found.append(f"M{there}L{back}z")
    return "".join(found)


def _points(points: Iterable[tuple[float, int]], scale: Scale) -> str:
    return "L".join(f"{x:g} {scale.height(value)}" for x, value in points)


def _known(values: Sequence[T | None]) -> Iterator[list[tuple[float, T]]]:
    """Runs of neighbours that are known, each with its place from left to right."""
    width = _WIDE / max(1, len(values) - 1)
    run: list[tuple[float, T]] = []
    for place, value in enumerate(values):
        if value is not None:
            run.append((round(place * width, 1), value))
        elif run:
            yield run
            run = []
    if run:
        yield run
