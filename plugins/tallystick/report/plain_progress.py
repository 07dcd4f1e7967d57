"""Progress as plain lines of a log: one every few seconds, none of what is over sooner."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tallystick.ports.progress import Told
from tallystick.report.progress_line import ProgressLine

log = logging.getLogger(__name__)
# Shown wherever the package's log is shown at all: who asked for errors alone waits, too.
log.setLevel(logging.INFO)

FIRST_SECONDS: Final = 5.0
# A landing of hours needs no thousand lines: each comes after a tenth of what has passed.
_LATER: Final = 10


@contextmanager
def plain_lines(title: str) -> Iterator[Told]:
    """Log how far the block has come, now and then, by what is told to the result."""
    line, ended, begun = ProgressLine(title, time.monotonic), threading.Event(), time.monotonic()

    def say() -> None:
        while not ended.wait(max(FIRST_SECONDS, (time.monotonic() - begun) / _LATER)):
            log.info("%s", line.text())

    thread = threading.Thread(target=say, name="progress", daemon=True)
    thread.start()
    try:
        yield line.hear
    finally:
        ended.set()
        thread.join()
