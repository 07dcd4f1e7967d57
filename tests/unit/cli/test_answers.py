"""The edge of the command line: whatever a name holds, it is shown and never acted on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import typer

from tallystick.cli.answers import WrittenAnswer, deliver
from tallystick.errors import FileMissing

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
