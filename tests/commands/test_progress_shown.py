"""A command that takes long says on standard error how far it is; its answer stays alone."""

from __future__ import annotations

import logging
import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import pytest

from tallystick.domain.finding_codes import Level
from tallystick.domain.identities import Owner
from tallystick.ports.progress import Progress
from tallystick.report import progress_line
from tallystick.settings.feed import Feed
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.repairing.repair import repair_feed
from tallystick.workflows.services import Services
from tests.support.command_line import CommandLine
from tests.support.story import Story


class Waiting(logging.Handler):
    """Knows when a line with these words was logged."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.was_said = threading.Event()
        self._words = words

    def emit(self, record: logging.LogRecord) -> None:
        if self._words in record.getMessage():
            self.was_said.set()


def test_a_landing_that_takes_long_says_how_far_it_is(
    landing: CommandLine, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress_line, "FIRST_SECONDS", 0.01)
    line = "landing orders: batch 2 of 3, land, 0 of "
    waiting = Waiting(line)
    numbers = iter(range(3))

    def services_of(feed: Feed, environ: object) -> AbstractContextManager[Services]:
        services = story.services()

        def wait(plan: object) -> None:
            if next(numbers) == 1:
                assert waiting.was_said.wait(60)

        spark: Any = services.spark
        spark._port.before_write = wait
        return nullcontext(replace(services, feed=feed))

    logging.getLogger("tallystick").addHandler(waiting)
    try:
        told = landing.with_stage(services_of=services_of)("land", "orders", "--json")
    finally:
        logging.getLogger("tallystick").removeHandler(waiting)

    assert told.code == 0
    assert told.json["planned"] == 22
    assert line in told.err
    assert line not in told.out


def test_whoever_fails_to_show_progress_stops_no_landing(
    story: Story, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[Progress] = []

    def failing(progress: Progress) -> None:
        asked.append(progress)
        raise OSError("the terminal is gone")

    report = land_feed(story.services().heard_by(failing), None, Owner("test"))

    assert not report.errors
    assert len(asked) == 1
    told = [each for each in caplog.messages if each.startswith("Progress")]
    assert told == ["Progress is told no more; the work goes on."]


def test_each_step_of_a_run_a_look_and_a_repair_is_told(story: Story) -> None:
    told: list[Progress] = []
    services = story.services().heard_by(told.append)

    def phases() -> list[str]:
        """What was told, in order, each phase once."""
        found = list(dict.fromkeys(each.phase for each in told))
        told.clear()
        return found

    land_feed(services, None, Owner("test"))
    run = phases()
    reconcile(services, Level.L4)
    look = phases()
    repair_feed(services, (), Owner("test"))

    assert run == [
        "finish", "settle", "plan", "land", "verify", "read back", "prove", "commit", "publish",
        "the second reader", "sweep", "check",
    ]  # fmt: skip
    assert look == [
        "reconcile", "ask the broker", "look at storage", "list directories", "compare files",
        "read offsets again", "scrub",
        "compare payloads", "the second reader", "settle",
    ]  # fmt: skip
    assert "repair" in phases()


def test_a_search_for_unreadable_records_tells_its_reads(story: Story) -> None:
    told: list[Progress] = []
    services = story.services().heard_by(told.append)
    spark: Any = services.spark
    spark._port.unreadable = {(1, 3): "it can't be read"}

    for _ in range(2):
        land_feed(services, None, Owner("test"))

    reads = [each.done for each in told if each.phase == "search for unreadable records"]
    assert reads[:3] == [0, 1, 2]
