"""Progress in a log: a line now and then, and none of what is over at once."""

from __future__ import annotations

import logging
import threading

import pytest

from tallystick.ports.progress import Progress
from tallystick.report import plain_progress
from tallystick.report.plain_progress import plain_lines

STORY = "tallystick.report.plain_progress"


class Lines(logging.Handler):
    """Keeps what is said, and wakes who waits for so many lines."""

    def __init__(self, wanted: int) -> None:
        super().__init__()
        self.said: list[str] = []
        self.is_enough = threading.Event()
        self._wanted = wanted

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        if len(self.said) >= self._wanted:
            self.is_enough.set()


@pytest.fixture
def lines() -> Lines:
    return Lines(wanted=2)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line comes at once."""
    monkeypatch.setattr(plain_progress, "FIRST_SECONDS", 0.01)


def test_work_that_takes_long_says_now_and_then_how_far_it_is(lines: Lines, soon: None) -> None:
    logging.getLogger(STORY).addHandler(lines)
    try:
        with plain_lines("feed orders") as told:
            told(Progress("land", 3, 8, "files"))
            assert lines.is_enough.wait(60)
    finally:
        logging.getLogger(STORY).removeHandler(lines)

    assert lines.said[-1].startswith("feed orders: land, 3 of 8 files, ")
    assert not [each for each in threading.enumerate() if each.name == "progress"]


def test_work_that_is_soon_over_says_nothing(lines: Lines) -> None:
    logging.getLogger(STORY).addHandler(lines)
    try:
        with plain_lines("feed orders") as told:
            told(Progress("land"))
    finally:
        logging.getLogger(STORY).removeHandler(lines)

    assert lines.said == []


def test_whoever_asked_for_errors_alone_is_told_too(
    lines: Lines, soon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("tallystick"), "level", logging.ERROR)
    logging.getLogger("tallystick").addHandler(lines)
    try:
        with plain_lines("feed orders"):
            assert lines.is_enough.wait(60)
    finally:
        logging.getLogger("tallystick").removeHandler(lines)


def test_an_error_ends_the_lines_and_passes() -> None:
    with pytest.raises(KeyboardInterrupt), plain_lines("feed orders"):
        raise KeyboardInterrupt

    assert not [each for each in threading.enumerate() if each.name == "progress"]
