"""What is told while work goes on: on a terminal and elsewhere, each trouble once."""

from __future__ import annotations

import io
import logging
import sys
from unittest.mock import Mock

import pytest

from tallystick.cli.progress import first_word, told

LOG = logging.getLogger("tallystick.somewhere")


class Stream(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal


@pytest.mark.parametrize("is_terminal", [False, True])
def test_the_story_is_told_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    stream = Stream(is_terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "200")
    with told("landing orders"):
        LOG.info("batch %s [bold]", 7)
        LOG.debug("a detail")
        for milliseconds in (0, 3):
            LOG.error("connect failed (after %dms)", milliseconds)
    LOG.error("after the end")
    text = stream.getvalue()
    assert "batch 7 [bold]" in text
    assert text.count("connect failed") == 1
    assert "a detail" not in text
    assert "after the end" not in text
    assert ("landing orders" in text) == is_terminal


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_name_in_a_log_line_never_speaks_to_the_terminal(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    stream = Stream(is_terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "200")
    with told("repairing orders"):
        LOG.info("Moved %s to %s.", "/x\x1b]0;owned\x07y", "/a\u202eb")
        try:
            raise ValueError("bad \x1b[2J name")
        except ValueError:
            LOG.exception("failed")
    text = stream.getvalue()
    assert "\x1b]0;" not in text
    assert "\x1b[2J name" not in text
    assert r"Moved /x\x1b]0;owned\x07y to /a\u202eb." in text
    assert "Traceback" in text
    assert len(text.splitlines()) > 3, "a traceback keeps its lines"


def test_the_loggers_are_left_as_they_were() -> None:
    logger = logging.getLogger("tallystick")
    before = (logger.level, logger.propagate, list(logger.handlers))
    with told("x", logging.ERROR):
        assert logger.level == logging.ERROR
    assert (logger.level, logger.propagate, list(logger.handlers)) == before


@pytest.mark.parametrize(
    ("is_terminal", "said"), [(False, "asking Kafka at kafka:9092\n"), (True, "")]
)
def test_who_is_asked_is_said_at_once(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, said: str
) -> None:
    stream = Stream(is_terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    first_word(Mock(servers="kafka:9092"))
    assert stream.getvalue() == said
