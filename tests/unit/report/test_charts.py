"""The drawings: every cell, bar and line stands where its numbers say."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.report.document import BandPart
from tallystick.domain.verdicts import Verdict
from tallystick.report.charts import (
    Drawn,
    band_plot,
    coverage_plot,
    drawn,
    holes_plot,
    windows_plot,
)
from tallystick.report.planes import TALL, Plot, scale_of
from tests.support.report_documents import a_document

NUMBER = r"(-?[\d.e+]+)"


def boxes(plot: Plot, colour: str) -> list[tuple[float, float, float, float]]:
    """Left, top, width and height of each rectangle of this colour."""
    [path] = [each.path for each in plot.shapes if each.colour == colour and not each.is_line]
    found = re.findall(rf"M{NUMBER} {NUMBER}h{NUMBER}v{NUMBER}h-{NUMBER}z", path)
    return [tuple(map(float, each[:4])) for each in found]  # type: ignore[misc]


def line(plot: Plot, colour: str) -> str:
    [path] = [each.path for each in plot.shapes if each.colour == colour and each.is_line]
    return path


@pytest.mark.parametrize(("partitions", "columns"), [(1, 1), (12, 48), (300, 120)])
def test_every_cell_of_the_map_is_painted_once_in_its_verdict(
    partitions: int, columns: int
) -> None:
    found = a_document(partitions=partitions, columns=columns).coverage
    plot = coverage_plot(found)

    painted: Counter[tuple[int, int, str]] = Counter()
    for shape in plot.shapes:
        for left, top, wide, tall in boxes(plot, shape.colour):
            assert tall == 1
            painted.update((int(top), int(left) + each, shape.colour) for each in range(int(wide)))

    assert painted == Counter(
        (row, column, verdict.value)
        for row, block in enumerate(found.blocks)
        for column, verdict in enumerate(block.verdicts)
    )
    assert (plot.wide, plot.tall) == (columns, len(found.blocks))


def test_what_is_told_of_each_cell_is_its_verdict_and_count() -> None:
    found = a_document(partitions=300, columns=24).coverage
    plot = coverage_plot(found)

    verdicts = plot.verdicts.split("|")
    for block, text in zip(found.blocks, plot.cells.split("|"), strict=True):
        told: list[tuple[str, int]] = []
        for run in text.split(","):
            verdict, count, length = re.split("[:*]", run)
            told += [(verdicts[int(verdict)], int(count))] * int(length)
        assert told == [
            (verdict.value, count)
            for verdict, count in zip(block.verdicts, block.counts, strict=True)
        ]
    assert plot.rows.split("|")[0] == "0-2"
    assert len(plot.columns.split("|")) == 25
    assert {name for name, _ in plot.legend} == {
        each.value for block in found.blocks for each in block.verdicts
    }


def test_bars_are_as_tall_as_their_numbers() -> None:
    document = a_document(columns=12)
    plot = windows_plot(document.coverage.edges, document.columns)
    scale = scale_of(
        [each.landed_offsets for each in document.columns]
        + [each.produced for each in document.columns],
        from_zero=True,
    )

    found = boxes(plot, "landed")

    assert [height for _, _, _, height in found] == [
        TALL - scale.height(each.landed_offsets) for each in document.columns if each.landed_offsets
    ]
    assert all(top + height == TALL for _, top, _, height in found)
    assert [int(left) for left, _, _, _ in found] == list(range(10))


def test_what_is_not_known_is_a_hole_in_the_line() -> None:
    document = a_document(columns=12)
    produced = line(windows_plot(document.coverage.edges, document.columns), "produced")
    start = line(band_plot(document.band), "log-start")

    assert produced.startswith("M1 ")  # the first column has no look before it
    assert produced.count("M") == 1
    assert start.count("M") == 2  # a partition could not be asked in between
    assert "unknown" in windows_plot(document.coverage.edges, document.columns).told[0]
    assert "could not be asked" in band_plot(document.band).told[3]


def test_holes_stand_on_top_of_one_another() -> None:
    document = a_document(columns=6)
    plot = holes_plot(document.coverage.edges, document.columns)

    control, aborted = boxes(plot, "control"), boxes(plot, "aborted")

    assert [top for _, top, _, _ in control] == [top + height for _, top, _, height in aborted]
    assert [name for _, name in plot.legend] == ["control", "aborted", "compacted"]


def test_a_single_look_is_a_point_and_no_report_draws_nothing() -> None:
    document = a_document(columns=4)
    assert line(band_plot(document.band[:1]), "frontier").endswith("h0")

    empty = replace(document.coverage, edges=(), blocks=())
    found: Drawn = drawn(document.taken_at, empty, (), (), ())

    for plot in (found.coverage, found.band, found.windows, found.holes):
        assert not "".join(each.path for each in plot.shapes)
        assert not plot.told
    assert (found.ages, found.levels) == ((), ())


def corners(path: str) -> list[tuple[int, int]]:
    """Where a path of stairs turns, each corner once."""
    found: list[tuple[int, int]] = []
    for kind, first, second in re.findall(r"([MHV])(\d+)(?: (\d+))?", path):
        x, y = found[-1] if found else (0, 0)
        match kind:
            case "M":
                x, y = int(first), int(second)
            case "H":
                x = int(first)
            case _:
                y = int(first)
        found.append((x, y))
    return found


def test_a_level_holds_until_the_next_look_and_time_runs_evenly() -> None:
    noon, minute = datetime(2026, 11, 1, 12, tzinfo=UTC), timedelta(minutes=1)
    levels = [(0, 0, 10, 40), (30, 0, 30, 40), (40, 20, 40, 40)]
    band = [
        BandPart(noon + at * minute, start, front, end, end, is_whole=True)
        for at, start, front, end in levels
    ]
    plot = band_plot(band)
    y = scale_of([0, 40], from_zero=False).height

    assert plot.places == (0, 750, 1000)
    assert [each.text[-5:] for each in plot.times] == ["12:00", "12:10", "12:20", "12:30", "12:40"]
    stairs = [(0, y(10)), (750, y(10)), (750, y(30)), (1000, y(30)), (1000, y(40))]
    assert corners(line(plot, "frontier")) == stairs
    [kept] = [each.path for each in plot.shapes if each.colour == "kept"]
    back = [(1000, y(20)), (1000, y(0)), (750, y(0)), (0, y(0))]
    assert [each for each, _ in groupby(corners(kept))] == [*stairs, *back]


def test_a_cell_of_one_partition_tells_its_offsets_and_has_a_border() -> None:
    found = a_document(partitions=2, columns=3).coverage
    first = replace(found.blocks[0], until_offsets=(5, None, 9))
    plot = coverage_plot(replace(found, blocks=(first, found.blocks[1])))

    assert plot.offsets == "5,,9|"
    assert plot.grid == "M1 0V2M2 0V2M0 1H3"
    assert coverage_plot(a_document(partitions=300).coverage).grid == ""


def test_ages_go_from_the_youngest_to_never() -> None:
    document = a_document()
    found = drawn(document.taken_at, document.coverage, (), (), document.ages)

    assert found.levels == ("L2", "L3")
    assert [(each.name, each.batches) for each in found.ages] == [
        ("under 1 h", (4, 2)),
        ("under 2 d", (80, 30)),
        ("under 7 d", (0, 50)),
        ("never", (0, 2)),
    ]


@given(st.lists(st.integers(0, 2**62) | st.none()), st.booleans())
def test_a_scale_holds_all_values_with_few_labels(
    values: list[int | None], from_zero: bool
) -> None:
    scale = scale_of(values, from_zero=from_zero)

    assert 2 <= len(scale.labels) <= 7
    assert all(0 <= scale.height(each) <= TALL for each in values if each is not None)
    assert (scale.low == 0.0) or not from_zero


def test_every_colour_of_a_drawing_is_in_the_style() -> None:
    from tallystick.report.html_page import page_asset

    document = a_document()
    found = drawn(
        document.taken_at, document.coverage, document.columns, document.band, document.ages
    )
    used = {each.colour for plot in (found.coverage, found.band, found.windows, found.holes)
            for each in plot.shapes} | {each.value for each in Verdict}  # fmt: skip

    assert used <= set(re.findall(r'\[data-colour="([^"]+)"\]', page_asset("page.css")))
