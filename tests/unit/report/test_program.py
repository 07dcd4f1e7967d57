"""How a text calls the command, where it is read."""

from __future__ import annotations

import pytest
from typer.main import get_group

from tallystick.cli.app import app
from tallystick.report import safe_text
from tallystick.report.safe_text import visible, visible_lines

NEXT = "Mend it: tallystick ledger rebuild orders --json\nor tallystick kafka-secrets orders"


def test_each_command_of_the_command_line_is_known() -> None:
    assert {*get_group(app).commands} == {*safe_text.COMMANDS}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "called", ["./tallystick", "python -m tallystick", "docker compose exec a tallystick", "tl"]
)
def test_faces_call_the_command_as_it_is_called_here(
    called: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYSTICK_PROGRAM", called)

    assert visible_lines(visible_lines(NEXT)) == NEXT.replace("tallystick ", f"{called} ")


@pytest.mark.parametrize(
    "text", ["role tallystick may not", "/srv/tallystick plan", "my-tallystick land", "tallystick"]
)
def test_what_is_no_command_is_left(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYSTICK_PROGRAM", "./tallystick")

    assert visible(text) == text


def test_a_checkout_without_the_setting_is_called_as_a_module(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TALLYSTICK_PROGRAM")

    assert visible("tallystick feed check") == "python -m tallystick feed check"
