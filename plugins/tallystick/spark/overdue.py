"""Ends an application that runs for too long, from a thread beside the one that waits for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

logger = logging.getLogger(__name__)


@contextmanager
def ended_after(longest: timedelta, end: Callable[[], object]) -> Iterator[threading.Event]:
    """Calls `end` once when the block takes longer; the event says if that has happened."""
    is_overdue = threading.Event()

    def too_long() -> None:
        is_overdue.set()
        logger.error("The Spark application has run for %s: it is ended.", longest)
        end()

    timer = threading.Timer(longest.total_seconds(), too_long)
    timer.daemon = True
    timer.start()
    try:
        yield is_overdue
    finally:
        timer.cancel()
