"""What recheck.py says of a story: its export, its files, and a log in librdkafka's own broker."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import recheck
from tallystick.ledger.exporting import exported
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import report_of, store_report
from tests.support.story import FEED, Story

Lines = list[dict[str, Any]]


@dataclass
class Rechecked:
    """One run of the script."""

    exit_code: int
    said: str
    verdicts: dict[int, tuple[str, str]] = field(init=False)
    """By partition: its own verdict, and the report's."""

    def __post_init__(self) -> None:
        line = r"^orders-(\d+): (\w+), the report: (\w+)$"
        found = re.findall(line, self.said, re.MULTILINE)
        self.verdicts = {int(number): (own, told) for number, own, told in found}

    @property
    def head(self) -> str:
        [digest] = re.findall(r"head=([0-9a-f]{64})", self.said)
        return str(digest)


@dataclass
class Sceptic:
    """Somebody who has an export and the files, and believes nobody."""

    story: Story
    place: Path
    say: Callable[[], str]

    def export(self) -> Lines:
        return [json.loads(each.line) for each in exported(self.story.dsn, FEED)]

    def reported(self) -> Lines:
        """The export after a reconcile has stored its report."""
        services = self.story.services()
        store_report(services, report_of(services, reconcile(services)))
        return self.export()

    def recheck(self, lines: Lines | None = None, *options: str) -> Rechecked:
        path = self.place / "export.jsonl"
        path.write_text("".join(f"{json.dumps(each)}\n" for each in lines or self.reported()))
        code = recheck.main(str(path), f"file://{self.story.directory}", *options)
        return Rechecked(code, self.say())


def sceptic_of(story: Story, place: Path, captured: pytest.CaptureFixture[str]) -> Sceptic:
    return Sceptic(story, place, lambda: captured.readouterr().out)


def rows_of(lines: Lines, table: str) -> Sequence[dict[str, Any]]:
    return [each for each in lines if each["table"] == table]
