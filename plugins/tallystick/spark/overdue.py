"""Ends an application, or a read of it, that takes too long; from a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

logger = logging.getLogger(__name__)

LONGEST_READ: Final = timedelta(minutes=2)
"""Of a search for unreadable offsets: a read that takes longer counts as one that hangs. A large
piece that only needs longer is read in halves then, so nothing wrong is named."""


class Deadline:
    """An application ends by then; a sign of life may bring that nearer, never move it away."""

    def __init__(self, longest: timedelta, end: Callable[[], object]) -> None:
        self._end = end
        self._passed = threading.Event()
        self._timers = [self._timer(longest)]
        self.limit = longest
        """What was exceeded, once it has passed."""

    @property
    def has_passed(self) -> bool:
        """True when the application had to be ended."""
        return self._passed.is_set()

    def expect(self, within: timedelta) -> None:
        """Expects the next sign of life within so long from now on."""
        while len(self._timers) > 1:
            self._timers.pop().cancel()
        self._timers.append(self._timer(within))

    def cancel(self) -> None:
        """Nothing is ended any more."""
        while self._timers:
            self._timers.pop().cancel()

    def _timer(self, after: timedelta) -> threading.Timer:
        timer = threading.Timer(after.total_seconds(), self._pass, (after,))
        timer.daemon = True
        timer.start()
        return timer

    def _pass(self, limit: timedelta) -> None:
        self.limit = limit
        self._passed.set()
        logger.error(
            "The Spark application has run, or read one piece, for %s: it is ended.", limit
        )
        self._end()


@contextmanager
def ended_after(longest: timedelta, end: Callable[[], object]) -> Iterator[Deadline]:
    """Calls `end` when the block takes longer, or when a sign that was expected does not come."""
    deadline = Deadline(longest, end)
    try:
        yield deadline
    finally:
        deadline.cancel()
