"""Tells on standard error what goes on: live on a terminal, by plain lines elsewhere."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tallystick.ports.progress import Told
from tallystick.report.progress_line import ProgressLine, plain_lines
from tallystick.report.safe_text import visible_lines

if TYPE_CHECKING:
    from rich.console import Console

    from tallystick.cli.stage import Stage
    from tallystick.settings.feed import Feed
    from tallystick.workflows.services import Services

_STORY: Final = "tallystick"
_MILLISECONDS: Final = re.compile(r"\d+ms")


@contextlib.contextmanager
def watched(stage: Stage, feed: Feed, what: str, level: int = logging.INFO) -> Iterator[Services]:
    """The feed's services; how far they have come is shown until the block ends, and the log."""
    with told(what, level) as listener, stage.services(feed) as services:
        first_word(services)
        yield services.heard_by(listener)


def first_word(services: Services) -> None:
    """Say who is asked now: it may be long silent. On a terminal, the live line says enough."""
    if not _is_live():
        print(f"asking Kafka at {services.servers}", file=sys.stderr, flush=True)  # noqa: T201


@contextlib.contextmanager
def told(what: str, level: int = logging.INFO) -> Iterator[Told]:
    """Show the package's log from this level on, and how far the work has come, until the block
    ends; the result hears it.
    """
    logger = logging.getLogger(_STORY)
    before = logger.level, logger.propagate
    with _shown(what) as (handler, listener):
        handler.addFilter(_Once())
        logger.addHandler(handler)
        logger.setLevel(level)
        logger.propagate = False
        try:
            yield listener
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before[0])
            logger.propagate = before[1]


def _is_live() -> bool:
    """True where a line can be written over."""
    return sys.stderr.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


@contextlib.contextmanager
def _shown(what: str) -> Iterator[tuple[logging.Handler, Told]]:
    if not _is_live():
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Visible("%(asctime)s %(message)s", "%H:%M:%S"))
        with plain_lines(what) as listener:
            yield handler, listener
        return
    from rich.console import Console  # a pipe never needs it
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    console = Console(stderr=True, highlight=False)
    line, spinner = ProgressLine(what, time.monotonic), Spinner("dots")

    def shown() -> Spinner:
        # The spinner and the gap behind it; the last column would wrap on some terminals.
        spinner.update(text=Text(line.text(console.width - 3)))
        return spinner

    with Live(get_renderable=shown, console=console, refresh_per_second=8, transient=True):
        yield _ConsoleHandler(console), line.hear


class _Visible(logging.Formatter):
    """Spells out what a terminal would act on: names of files and topics may hold anything."""

    def format(self, record: logging.LogRecord) -> str:
        """The record with its line breaks, and nothing else that is not shown."""
        return visible_lines(super().format(record))


class _Once(logging.Filter):
    """Lets a warning or an error pass once: Kafka's client says the same ten times a second."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """True for what was not said before in these very words, milliseconds aside."""
        if record.levelno < logging.WARNING:
            return True
        words = _MILLISECONDS.sub("", record.getMessage())
        is_new = words not in self._said
        self._said.add(words)
        return is_new


class _ConsoleHandler(logging.Handler):
    """Prints above the live line."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self.setFormatter(_Visible("%(asctime)s %(message)s", "%H:%M:%S"))
        self._console = console

    def emit(self, record: logging.LogRecord) -> None:
        """One record, one line or more; nothing in it is taken for markup."""
        self._console.print(self.format(record), markup=False)
