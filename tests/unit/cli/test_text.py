"""Tables as a terminal shows them; whatever a name holds, it is shown and never acted on."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable

import pytest
import typer

from tallystick.cli.answers import (
    MOST_ROWS,
    Table,
    WrittenAnswer,
    deliver,
    grouped,
    plain_lines,
    show_blocks,
)
from tallystick.errors import FileMissing


def test_columns_are_aligned_and_numbers_end_together() -> None:
    table = Table(("name", "rows#"), [["a", "1"], ["longer", "41 200"]])
    assert plain_lines(table) == ["name      rows", "a            1", "longer  41 200"]


def test_what_is_left_out_is_counted() -> None:
    rows = [[str(n)] for n in range(MOST_ROWS + 1500)]
    lines = plain_lines(Table(("n#",), rows))
    assert len(lines) == MOST_ROWS + 2
    assert lines[-1] == "... and 1 500 more (--json shows all)"


def test_nothing_that_a_terminal_would_act_on_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_blocks(["a\x1b[2Jb\nnext", Table(("name", "n#"), [["\x1b]0;title\x07", "1"]])])
    assert capsys.readouterr().out.splitlines() == [
        "a\\x1b[2Jb", "next", "name              n", "\\x1b]0;title\\x07  1"
    ]  # fmt: skip


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (999, "999"), (1234567, "1 234 567")])
def test_numbers(value: int, text: str) -> None:
    assert grouped(value) == text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_the_same_facts_and_takes_nothing_for_markup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    show_blocks(["orders-0 [5, 8) [red]", Table(("range", "n#"), [["[0, 5)", "5"]])])
    shown = terminal.getvalue()
    assert "orders-0 [5, 8) [red]" in shown
    assert "[0, 5)" in shown


PATH = "/data/landing/orders/gen=1/dt=2026-11-01/hour=06/batch=1c0d8e2f3a4b5c6d/part-00000.parquet"


def shown_at(width: int, monkeypatch: pytest.MonkeyPatch, *blocks: str | Table) -> list[str]:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(width))
    show_blocks(blocks)
    without_bold = re.sub(r"\x1b\[\d+m", "", terminal.getvalue())
    return [line.rstrip() for line in without_bold.splitlines()]


def test_no_path_is_broken_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(("partition#", "rows#", "path"), [["0", "12", PATH], ["1", "7", PATH]])
    said = f"committed rows are not in storage: {PATH} is missing."
    assert shown_at(80, monkeypatch, said, table) == [
        said,
        "partition  0",
        "rows       12",
        f"path       {PATH}",
        "",
        "partition  1",
        "rows       7",
        f"path       {PATH}",
        "",
    ]
    assert shown_at(120, monkeypatch, table)[0].split() == ["partition", "rows", "path"]


def test_a_table_is_wrapped_between_words_where_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "the log start passed these offsets before they were read " * 3
    lines = shown_at(60, monkeypatch, Table(("finding#", "cause"), [["7", words.strip()]]))
    assert lines[0].split() == ["finding", "cause"]
    assert " ".join(" ".join(lines[1:]).split()) == f"7 {words.strip()}"


NAME = "/landing/x\x1b]0;owned\x07\x1b[2Jy.parquet"
SHOWN = r"/landing/x\x1b]0;owned\x07\x1b[2Jy.parquet"


def refused() -> WrittenAnswer:
    raise FileMissing(NAME)


def defective() -> WrittenAnswer:
    raise ValueError(NAME)


def noted() -> WrittenAnswer:
    return WrittenAnswer("", notes=[f"{NAME}\nis kept"])


@pytest.mark.parametrize("work", [refused, defective, noted])
def test_a_name_on_standard_error_never_speaks_to_the_terminal(
    work: Callable[[], WrittenAnswer], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        deliver(work, as_json=False)
    told = capsys.readouterr().err
    assert "\x1b" not in told
    assert SHOWN in told
    assert len(told.splitlines()) > 1
