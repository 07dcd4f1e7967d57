"""What is told while work goes on: on a terminal and elsewhere, each trouble once."""

from __future__ import annotations

import fcntl
import io
import logging
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from unittest.mock import Mock

import pytest

from tallystick.cli.progress import first_word, told

LOG = logging.getLogger("tallystick.somewhere")
LANDING = """
import sys, threading
from rich.live import Live
from tallystick.cli.progress import told
from tallystick.ports.progress import Progress
drawn, refresh = threading.Event(), Live.refresh
def refreshed(live):
    refresh(live)
    drawn.set()
Live.refresh = refreshed
with told("landing orders") as listener:
    for done in range(5):
        listener(Progress("land", done * 500_000, 2_000_000, "offsets", note="1 of 8 files"))
        # What ends first may have begun before it was told.
        for _ in range(2 if "drawn" in sys.argv else 0):
            drawn.clear()
            assert drawn.wait(60)
    if "fail" in sys.argv:
        raise KeyboardInterrupt
print("done", file=sys.stderr)
"""
# What moves the cursor to the start of a line, or away from one.
MOVES = re.compile(r"\r\n|\r|\n|\x1b\[\d*[A-HJKf]")
ESCAPES = re.compile(r"\x1b\[[?\d;]*[a-zA-Z]")
HIDDEN, SHOWN = "\x1b[?25l", "\x1b[?25h"
# To the line above, and its end: what was the live one is empty.
CLEARED = "\r\x1b[1A\x1b[2K"


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


def on_a_terminal(columns: int, *arguments: str, **environ: str) -> str:
    """What a terminal of that width gets to show."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-c", LANDING, *arguments],
        env={**kept, "TERM": "xterm", "PYTHONPATH": os.pathsep.join(sys.path), **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    ):
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the last writer has closed its side
            pass
        finally:
            os.close(ours)
    return shown.decode()


@pytest.mark.parametrize("columns", [120, 80, 40, 12])
def test_a_terminal_shows_one_line_that_changes_and_leaves_nothing(columns: int) -> None:
    shown = on_a_terminal(columns, "drawn")

    lines = [ESCAPES.sub("", each) for each in MOVES.split(shown)]
    assert max(map(len, lines)) < columns
    assert "landing"[: columns - 3] in shown
    if columns >= 80:
        assert "land, 0 of 2 000 000 offsets" in shown
        assert "land, 1 500 000 of 2 000 000 offsets" in shown
    assert shown.startswith(HIDDEN)
    assert shown.endswith(f"{SHOWN}{CLEARED}done\r\n")


def test_a_live_line_ends_cleanly_when_the_work_is_interrupted() -> None:
    shown = on_a_terminal(80, "fail", "drawn")

    live, _, after = shown.rpartition(SHOWN)
    assert "landing orders" in live
    assert after.startswith(f"{CLEARED}Traceback")


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"TERM": "unknown"}])
def test_a_terminal_that_cannot_write_over_a_line_gets_plain_ones(environ: dict[str, str]) -> None:
    assert on_a_terminal(80, **environ) == "done\r\n"


def test_colours_are_left_out_where_nobody_wants_them() -> None:
    assert not re.search(r"\x1b\[[\d;]*m", on_a_terminal(80, "drawn", NO_COLOR="1"))
