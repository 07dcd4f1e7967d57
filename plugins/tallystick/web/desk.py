"""Questions to the ledger, few at a time, and none longer than a reader waits.

Airflow's api-server has threads of its own for its own pages: none of them ever waits for us.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Final, TypeVar

from tallystick.errors import IngestionError, LedgerUnavailable
from tallystick.ports.ledger import Ledger

log = logging.getLogger(__name__)
T = TypeVar("T")

PATIENCE: Final = timedelta(seconds=1.5)
"""Of one statement."""
_DEADLINE_SECONDS: Final = 1.8
_MOST_AT_ONCE: Final = 4


class LedgerDesk:
    """A few threads, each with a ledger of its own, opened when it is first asked."""

    def __init__(self, opened: Callable[[], Ledger]) -> None:
        self._opened = opened
        self._threads = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="tallystick-page")
        self._own = threading.local()

    async def ask(self, question: Callable[[Ledger], T]) -> T:
        """What the question gives; raises LedgerUnavailable when that takes too long.

        A question that has not begun by then is never asked.
        """
        asked = self._threads.submit(self._answer, question)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(asked), _DEADLINE_SECONDS)
        except TimeoutError as error:
            reason = f"no answer within {_DEADLINE_SECONDS} s"
            log.warning("Tallystick's page: %s", reason)
            raise LedgerUnavailable(reason) from error

    def _answer(self, question: Callable[[Ledger], T]) -> T:
        try:
            ledger: Ledger | None = getattr(self._own, "ledger", None)
            if ledger is None:
                ledger = self._own.ledger = self._opened()
            return question(ledger)
        except IngestionError as error:
            # Looked up anew by the next question: somebody may have mended the connection.
            self._own.ledger = None
            log.warning("Tallystick's page: %s", error.describe())
            raise
