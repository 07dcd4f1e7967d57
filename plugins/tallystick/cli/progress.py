"""Tells on standard error what goes on: live on a terminal, one line per step elsewhere."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tallystick.report.safe_text import visible_lines

if TYPE_CHECKING:
    from rich.console import Console

    from tallystick.workflows.services import Services

_STORY: Final = "tallystick"
_MILLISECONDS: Final = re.compile(r"\d+ms")


def first_word(services: Services) -> None:
    """Say who is asked now: it may be long silent. On a terminal, the live line says enough."""
    if not sys.stderr.isatty():
        print(f"asking Kafka at {services.servers}", file=sys.stderr, flush=True)  # noqa: T201


@contextlib.contextmanager
def told(what: str, level: int = logging.INFO) -> Iterator[None]:
    """Show the package's log from this level on, and that work goes on, until the block ends."""
    logger = logging.getLogger(_STORY)
    before = logger.level, logger.propagate
    with _handler(what) as handler:
        handler.addFilter(_Once())
        logger.addHandler(handler)
        logger.setLevel(level)
        logger.propagate = False
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before[0])
            logger.propagate = before[1]


@contextlib.contextmanager
def _handler(what: str) -> Iterator[logging.Handler]:
    if not sys.stderr.isatty():
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Visible("%(asctime)s %(message)s", "%H:%M:%S"))
        yield handler
        return
    from rich.console import Console  # a pipe never needs it
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        progress.add_task(what, total=None)
        yield _ConsoleHandler(console)


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
