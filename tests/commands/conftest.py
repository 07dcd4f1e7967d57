"""The command line over a ledger of its own and a scripted broker."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tallystick.settings.feed import Feed
from tallystick.workflows.services import Services
from tests.support.command_line import CommandLine
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import Story
from tests.unit.cli.conftest import cli

__all__ = ["cli"]


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
