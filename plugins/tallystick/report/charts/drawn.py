"""All drawings of a report, and the table of ages: what the template `charts.html` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tallystick.domain.report.coverage_map import CoverageMap
from tallystick.domain.report.document import AgePart, BandPart, ColumnPart
from tallystick.report.charts.coverage import MapPlot, coverage_plot
from tallystick.report.charts.offsets import band_plot, holes_plot, windows_plot
from tallystick.report.charts.plot import Plot


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
        return f"over {_span(part.from_seconds)}"
    return f"under {_span(part.until_seconds)}"


def _span(seconds: int) -> str:
    return f"{seconds // 86_400} d" if seconds >= 86_400 else f"{seconds // 3_600} h"
