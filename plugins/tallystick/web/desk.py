"""Questions to the ledger, few at a time, and none longer than a reader waits.

Airflow's api-server has threads of its own for its own pages: none of them ever waits for us.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Final, TypeVar, cast

from tallystick.errors import IngestionError, LedgerUnavailable
from tallystick.ledger.ledger import Ledger

log = logging.getLogger(__name__)
T = TypeVar("T")

READER_SECONDS: Final = 1.8
"""Of all that a page asks for, where Airflow's settings say nothing else."""
_MOST_AT_ONCE: Final = 4


def patience_of(reader_seconds: float) -> timedelta:
    """Returns a statement's patience: it ends, and frees its thread, before the reader is told."""
    return timedelta(seconds=reader_seconds * 5 / 6)


class LedgerThreads:
    """A few threads, each with a ledger of its own, opened when it is first asked."""

    def __init__(
        self, opened: Callable[[], Ledger], reader_seconds: float = READER_SECONDS
    ) -> None:
        self.reader_seconds = reader_seconds
        """How long a reader waits."""
        self._opened = opened
        self._threads = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="tallystick-page")
        self._own = threading.local()

    def submit(self, question: Callable[[Ledger], T], is_over: threading.Event) -> Future[T]:
        """Let a thread answer; once it is over, the question asks the ledger nothing more."""
        return self._threads.submit(self._answer, question, is_over)

    def _answer(self, question: Callable[[Ledger], T], is_over: threading.Event) -> T:
        try:
            ledger: Ledger | None = getattr(self._own, "ledger", None)
            if ledger is None:
                ledger = self._own.ledger = self._opened()
            return question(cast("Ledger", _WhileAwaited(ledger, is_over)))
        except IngestionError as error:
            # Looked up anew by the next question: somebody may have mended the connection.
            self._own.ledger = None
            if is_over.is_set():  # nobody else will say so
                log.warning("Tallystick's page: %s", error.describe())
            raise


class LedgerDesk:
    """One reader asks here. All of their questions together wait as long as one may."""

    def __init__(self, threads: LedgerThreads) -> None:
        self._threads = threads
        self._seconds_left = threads.reader_seconds

    async def ask(self, question: Callable[[Ledger], T]) -> T:
        """Returns what the question gives; raises LedgerUnavailable when that takes too long.

        A question that has not begun by then is never asked, and one that has asks nothing more.
        """
        is_over = threading.Event()
        allowed, began = self._seconds_left, time.monotonic()
        asked = self._threads.submit(question, is_over)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(asked), allowed)
        except TimeoutError as error:
            raise LedgerUnavailable(
                f"no answer within {self._threads.reader_seconds:g} s"
            ) from error
        finally:
            is_over.set()
            # What else the reader waits for, such as Airflow, is no fault of the ledger.
            left = allowed - (time.monotonic() - began)
            self._seconds_left = max(0.0, min(self._seconds_left, left))


class _WhileAwaited:
    """The ledger for as long as somebody waits for the answer."""

    def __init__(self, ledger: Ledger, is_over: threading.Event) -> None:
        self._ledger = ledger
        self._is_over = is_over

    def __getattr__(self, name: str) -> Any:
        if self._is_over.is_set():
            raise _NobodyWaits
        return getattr(self._ledger, name)


class _NobodyWaits(Exception):
    """The reader was told already that there is no answer."""
