"""Tables as plain lines, as a terminal shows them, and with a bound."""

from __future__ import annotations

import io
import sys

import pytest

from tallystick.cli.text import MOST_ROWS, Table, grouped, plain_lines, show_blocks


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
