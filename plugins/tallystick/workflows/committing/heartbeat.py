"""Holds a batch while an attempt works on it: a thread beside the work renews the lease.

A lease that runs out is no danger: another run then takes the batch over, and the older token is
dead.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tallystick.domain.batches.batch import Attempt
from tallystick.errors import AttemptFenced, LedgerError
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

_BEATS_PER_LEASE: Final = 4


@contextmanager
def lease_renewed(services: Services, attempt: Attempt) -> Iterator[None]:
    """Renew the lease that the attempt has just taken until the block ends, and bear a passing
    fault of the ledger.

    It is renewed for as long as an application of the feed may run, and one lease more: an attempt
    that hangs is taken over then, even where nobody could end it.
    """
    ended = threading.Event()
    thread = threading.Thread(
        target=_beat,
        args=(services, attempt, ended),
        name=f"lease of {attempt.batch_id}",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _beat(services: Services, attempt: Attempt, ended: threading.Event) -> None:
    every_seconds = max(1.0, services.lease.total_seconds() / _BEATS_PER_LEASE)
    longest = services.feed.spark.max_application_time + services.lease
    ends_at = time.monotonic() + longest.total_seconds()
    ledger = services.second_ledger()
    try:
        while not ended.wait(every_seconds):
            if time.monotonic() > ends_at:
                log.error(
                    "Batch %s has been held for %s by attempt %s: its lease is renewed no more.",
                    attempt.batch_id,
                    longest,
                    attempt.attempt_id,
                )
                return
            try:
                ledger.renew_lease(attempt, services.lease)
            except AttemptFenced as error:
                log.warning("%s", error)
                return
            except LedgerError as error:
                log.warning("The lease could not be renewed now, trying again: %s", error)
    finally:
        ledger.close()
