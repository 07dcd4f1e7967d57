"""The coverage map as a drawing: a row for each block of partitions, a column for each time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from tallystick.domain.report.coverage_map import CoverageBlock, CoverageMap
from tallystick.domain.verdicts import Verdict
from tallystick.report.charts.plot import Label, Plot, Shape, box, minute_text, time_labels

_VERDICTS: Final = tuple(Verdict)
_MOST_ROW_LABELS: Final = 8


@dataclass(frozen=True, slots=True)
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
        is_low=len(blocks) <= _MOST_ROW_LABELS,
    )


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
