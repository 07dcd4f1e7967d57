"""Writes table and chart of `docs/performance.md`: `.venv/bin/python bench/chart.py [LOG ...]`.

The figures are the lines of `docs/performance.jsonl`. Each LOG is the output of a bench, whose last
line is appended there first. Nothing is measured here.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.drawing import drawing_of
from bench.results import Result, aims_table, last_line, results_in

DOCS: Final = Path(__file__).resolve().parents[1] / "docs"
LINES: Final = DOCS / "performance.jsonl"
TEXT: Final = DOCS / "performance.md"
CHART: Final = DOCS / "performance.svg"


def main(*logs: str) -> None:
    """Append what the logs end with, then write the documents anew."""
    new = [last_line(Path(log)) for log in logs]
    with LINES.open("a") as file:
        file.writelines(f"{line}\n" for line in new)
    results = results_in(LINES)
    TEXT.write_text(with_table(TEXT.read_text(), results))
    CHART.write_text(drawing_of(results))


def with_table(text: str, results: Mapping[str, Result]) -> str:
    """The document with these results between its marks."""
    marks = ("<!-- aims: written by bench/chart.py -->", "<!-- end of aims -->")
    if [text.count(mark) for mark in marks] != [1, 1]:
        raise SystemExit(f"{TEXT}: it needs {' and '.join(marks)} once")
    before, rest = text.split(marks[0])
    after = rest.split(marks[1])[1]
    return f"{before}{marks[0]}\n\n{aims_table(results.values())}\n\n{marks[1]}{after}"


if __name__ == "__main__":
    main(*sys.argv[1:])
