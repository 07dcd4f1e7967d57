"""A spark-submit that runs, for whoever has to end it before it has said what it started."""

from __future__ import annotations

import logging
import os
import select
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tallystick.spark.submit_log import SubmitLog

if TYPE_CHECKING:
    from tallystick.spark.submit_hook import HeardSubmitHook

logger = logging.getLogger(__name__)

# It is dead by then; what it wrote lies in the pipe.
_DRAIN_SECONDS: Final = 1.0
_CHUNK_BYTES: Final = 65536


@dataclass(slots=True)
class RunningSubmit:
    """One spark-submit, and what it has said until now."""

    work_id: str
    """Of the attempt, or of the scrub."""
    log: SubmitLog
    hook: HeardSubmitHook

    def end(self) -> str | None:
        """Kill it, so that it submits nothing more; the id of what it had submitted, if it said so.

        The hook deletes a driver's pod, if it may. YARN it would ask by a program that few workers
        have, so that is left to the caller.

        Called from a signal's handler, too, in the midst of a wait or of a read of its output: so
        it waits for nothing, and reads past Python's buffer.
        """
        process = self.hook.process
        if process is None:
            return self.log.application_id
        if process.poll() is None:  # not reaped yet, so the id is still its
            if self.hook.place.is_on_kubernetes:
                try:
                    self.hook.on_kill()
                except Exception as error:  # noqa: BLE001 - of whatever client Kubernetes has
                    logger.warning("The driver's pod is not deleted, and ends itself: %s", error)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if self.log.application_id is None and process.stdout is not None:
            with suppress(OSError, ValueError):  # ValueError: it is closed
                for line in _rest(process.stdout.fileno()).splitlines():
                    self.log.add(line)
        return self.log.application_id


def _rest(descriptor: int) -> str:
    """Reads what lies in the pipe, up to its end."""
    until, found = time.monotonic() + _DRAIN_SECONDS, bytearray()
    while select.select([descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
        chunk = os.read(descriptor, _CHUNK_BYTES)
        if not chunk:
            break
        found += chunk
    return found.decode(errors="replace")
