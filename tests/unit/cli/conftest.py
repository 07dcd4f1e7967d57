"""What the tests of the command line share."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tallystick.cli.app import app
from tallystick.cli.stage import Stage
from tallystick.settings.feed import Feed
from tallystick.workflows.services import Services
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import Story

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


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """The command line over an empty folder `feeds`, with no connection at all."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "feeds"
    folder.mkdir()
    return CommandLine(folder, Stage(environ={"TALLYSTICK_FEEDS": str(folder)}))


@pytest.fixture
def story(ledger_dsn: str, tmp_path: Path) -> Story:
    """A topic of two partitions; one has an aborted transaction and its marker."""
    broker = ScriptedBroker("orders")
    broker.logs[0].append(Kind.RECORD, 10)
    broker.logs[0].append(Kind.ABORTED, 4)
    broker.logs[0].append(Kind.CONTROL, 1)
    broker.logs[1].append(Kind.RECORD, 7)
    directory = tmp_path / "hdfs"
    directory.mkdir()
    return Story(ledger_dsn, directory, broker)


@pytest.fixture
def landing(cli: CommandLine, story: Story) -> CommandLine:
    """The command line over the story, with its feed `orders`."""
    cli.write("orders")

    def services_of(feed: Feed, environ: object) -> Any:
        services: Services = story.services()
        return nullcontext(replace(services, feed=feed))

    environ = {**cli.stage.environ, "LEDGER_DSN": story.dsn}
    return cli.with_stage(environ=environ, services_of=services_of)
