"""docs/performance.md says what the benches printed, bad news too, and explains every bench."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.chart import CHART, LINES, TEXT, with_table
from bench.drawing import drawing_of
from bench.measured import Bound, print_result
from bench.results import Result, aims_table, last_line, results_in
from tests.support.repository import ROOT, sections_of

BENCHES = {
    path.stem
    for path in (ROOT / "bench").glob("*.py")
    if path.stem != "measured" and "print_result(" in path.read_text()
}
MACHINE = {
    "cores": 2,
    "memory_gib": 24,
    "platform": "Linux",
    "python": "3.11.7",
    "spark": "4.0.4",
    "load_before": 0.1,
}


def _line(name: str, figures: dict[str, object] | None = None, **bounds: Bound) -> str:
    found = {
        "name": name,
        "command": f"bench/{name}.py --pairs 3",
        "commit": "abcdef0",
        "machine": MACHINE,
        "pairs": 3,
        "figures": figures or {},
        "ratios": {what: bound.as_fields() for what, bound in bounds.items()},
    }
    return json.dumps(found)


def test_the_table_is_what_the_lines_say() -> None:
    assert with_table(TEXT.read_text(), results_in(LINES)) == TEXT.read_text()


def test_the_chart_is_what_the_lines_say() -> None:
    assert drawing_of(results_in(LINES)) == CHART.read_text()


def test_every_line_is_a_benchs() -> None:
    lines = LINES.read_text().splitlines()

    assert lines
    assert {Result.of(line).name for line in lines} <= BENCHES


def test_every_bench_ends_with_a_line_of_its_own_name() -> None:
    named = {
        (path.stem, name)
        for path in (ROOT / "bench").glob("*.py")
        for name in re.findall(r"print_result\(\s*\"(\w+)\"", path.read_text())
    }

    assert named == {(each, each) for each in BENCHES}


def test_every_bench_is_explained() -> None:
    section = sections_of(TEXT, level=2)["What bounds each figure"]

    assert sorted(re.findall(r"^\| `(\w+)` \| \S", section, re.MULTILINE)) == sorted(BENCHES)


def test_a_line_says_how_to_repeat_the_bench_and_names_no_place_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--directory", "/somewhere", "--pairs", "3", "--chromium=/somewhere/else", "--folds"]
    monkeypatch.setattr("sys.argv", [str(ROOT / "bench" / "scrub.py"), *options])

    print_result("scrub", 3, {}, {"speed": Bound(0.9, at_least=0.8)})

    found = Result.of(capsys.readouterr().out)
    assert found.command == "bench/scrub.py --pairs 3 --folds"
    assert found.measured[0].is_kept


@pytest.mark.parametrize(
    ("bound", "row"),
    [
        (Bound(0.2, at_most=0.28), "| 0.2 | at most 0.28 | yes |"),
        (Bound(0.28, at_most=0.28), "| 0.28 | at most 0.28 | yes |"),
        (Bound(0.29, at_most=0.28), "| 0.29 | at most 0.28 | **no** |"),
        (Bound(0.6, at_least=0.8), "| 0.6 | at least 0.8 | **no** |"),
        (Bound(0.9, at_least=0.8), "| 0.9 | at least 0.8 | yes |"),
        (Bound(1, at_most=0), "| 1 | at most 0 | **no** |"),
        (Bound(2.5, at_most=8, unit="s"), "| 2.5 s | at most 8 s | yes |"),
    ],
    ids=str,
)
def test_a_figure_stands_beside_its_aim(bound: Bound, row: str) -> None:
    table = aims_table([Result.of(_line("throughput", what=bound))])

    assert table.splitlines()[2] == (
        f"| `throughput` | what {row} 3, abcdef0, 2 cores, 24 GiB, load 0.1 |"
    )


def test_how_a_bench_was_measured_stands_once() -> None:
    table = aims_table([Result.of(_line("scrub", a=Bound(1.0, at_most=2), b=Bound(3, at_most=2)))])

    assert table.splitlines()[3] == "| `scrub` | b | 3 | at most 2 | **no** | |"


def test_what_has_no_aim_is_not_among_the_aims() -> None:
    line = _line("read_back", {"rows": 18_400}, without=Bound(18_400))

    assert "`read_back`" not in aims_table([Result.of(line)])


def test_of_each_bench_the_last_line_counts(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    lines = [
        _line("throughput", what=Bound(1.0)),
        _line("latency", what=Bound(2.0)),
        _line("throughput", what=Bound(3.0)),
    ]
    file.write_text("".join(f"{each}\n" for each in lines))

    found = results_in(file)

    assert {name: each.measured[0].is_ for name, each in found.items()} == {
        "latency": 2.0,
        "throughput": 3.0,
    }


def test_a_log_that_ends_otherwise_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"{_line('latency')}\nTraceback\n")

    with pytest.raises(SystemExit, match="its last line is no result"):
        last_line(log)


def test_the_chart_shows_on_which_side_of_the_aim_a_figure_is() -> None:
    lines = {
        "kept": _line("latency", good=Bound(0.5, at_most=1.0)),
        "missed": _line("scrub", bad=Bound(0.4, at_least=0.8)),
    }

    chart = drawing_of({name: Result.of(line) for name, line in lines.items()})

    kept, missed = re.findall(r'<circle cx="([\d.]+)" cy="\d+" r="5" fill="(#\w+)"', chart)
    assert float(kept[0]) < float(missed[0])
    assert kept[1] != missed[1]
    assert "0.4, at least 0.8" in chart


@pytest.mark.parametrize(
    ("bound", "end"),
    [
        (Bound(-3.0, at_most=4_000), min),
        (Bound(0.0, at_most=4_000), min),
        (Bound(1e9, at_most=4_000), max),
        (Bound(0.0, at_least=0.8), max),
    ],
    ids=str,
)
def test_a_figure_beyond_the_axis_is_drawn_at_its_end(
    bound: Bound, end: Callable[[list[float]], float]
) -> None:
    line = _line("server_memory", bytes=bound)

    chart = drawing_of({"server_memory": Result.of(line)})

    (place,) = re.findall(r'<circle cx="([\d.]+)"', chart)
    axis = [float(each) for each in re.findall(r'<line x1="([\d.]+)"', chart)]
    assert float(place) == end(axis)
