"""The trigger that asks the ledger if a feed is complete, while no task holds a worker's slot.

A ledger that does not answer ends no wait: it is asked again. The triggerer's loop never waits for
it, nor do the threads that other triggers share.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any, Final

from airflow.triggers.base import BaseTrigger, TriggerEvent

from tallystick.errors import IngestionError
from tallystick.orchestration.complete_sensor import Answer, ask
from tallystick.orchestration.connections import airflow_connection_async
from tallystick.settings.connections import Connection
from tallystick.wiring.adapters import LEDGER_CONNECTION, patient_ledger

log = logging.getLogger(__name__)

PATIENCE: Final = timedelta(seconds=20)
"""Of one statement."""
_MOST_AT_ONCE: Final = 4
_threads: Final = ThreadPoolExecutor(_MOST_AT_ONCE, thread_name_prefix="tallystick-complete")


class FeedCompleteTrigger(BaseTrigger):
    """Fires once the feed is complete up to the instant, or when asking makes no sense."""

    def __init__(self, feed: str, at: str, poke_interval: float) -> None:
        super().__init__()
        self.feed, self.at, self.poke_interval = feed, at, poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Tells another process how to make the same trigger."""
        kwargs = {"feed": self.feed, "at": self.at, "poke_interval": self.poke_interval}
        return f"{type(self).__module__}.{type(self).__qualname__}", kwargs

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event: `complete_up_to` with what was `said`, or an `error` that would stay."""
        asked: Future[Answer] | None = None
        told = ""
        while True:
            try:
                if asked is None:
                    connection = await airflow_connection_async(LEDGER_CONNECTION)
                    asked = _threads.submit(self._answer, connection)
                answer = await _within(asked, self.poke_interval)
            except TimeoutError:
                # Still asked: a second thread would wait for the same silence.
                log.warning("Feed %s: the ledger has not answered yet.", self.feed)
                continue
            except IngestionError as error:
                if not error.retry:
                    yield TriggerEvent({"error": str(error)})
                    return
                log.warning("Feed %s is asked again: %s", self.feed, error.describe())
            else:
                if answer.is_proven and answer.complete_up_to:
                    up_to = answer.complete_up_to.isoformat()
                    yield TriggerEvent({"complete_up_to": up_to, "said": str(answer)})
                    return
                if str(answer) != told:
                    told = str(answer)
                    log.info("Feed %s, waiting for %s: %s", self.feed, self.at, told)
            asked = None
            await asyncio.sleep(self.poke_interval)

    def _answer(self, connection: Connection) -> Answer:
        with closing(patient_ledger(lambda _: connection, PATIENCE)) as ledger:
            return ask(ledger, self.feed, datetime.fromisoformat(self.at))


async def _within(asked: Future[Answer], seconds: float) -> Answer:
    """The answer; raises TimeoutError after so long, and the question goes on."""
    # Until Python 3.12 `wait_for` drops a cancellation that comes together with the answer.
    async with asyncio.timeout(max(seconds, 1.0)):
        return await asyncio.shield(asyncio.wrap_future(asked))
