"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick.cli.stage import Stage
from tests.support.command_line import CommandLine


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line over an empty folder `feeds`, with no connection at all."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "feeds"
    folder.mkdir()
    return CommandLine(folder, Stage(environ={"TALLYSTICK_FEEDS": str(folder)}))
