"""The command line in this process, with its folder of feeds."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from tallystick.cli.app import app
from tallystick.cli.stage import Stage

FEED_FILE = """\
feed: {name}
source: {{topic: orders}}
schedule: {{cron: "0 * * * *", start_date: 2026-11-01}}
plan: {{max_records_per_batch: 8, until: {until}}}
target: {{root: /landing}}
"""


@dataclass
class Told:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as the one JSON document that it must be."""
        return json.loads(self.out)


@dataclass
class CommandLine:
    """The command line with its folder of feeds, and its stage."""

    folder: Path
    stage: Stage

    def __call__(self, *arguments: str) -> Told:
        done = CliRunner().invoke(app, arguments, obj=self.stage)
        return Told(done.exit_code, done.stdout, done.stderr)

    def with_stage(self, **changes: Any) -> CommandLine:
        """The same with another stage."""
        return CommandLine(self.folder, replace(self.stage, **changes))

    def write(self, name: str, content: str | None = None, *, until: str = "now") -> None:
        """Put a feed file into the folder."""
        text = FEED_FILE.format(name=name, until=until) if content is None else content
        (self.folder / f"{name}.yaml").write_text(text)
