"""What a Spark Connect server does at this moment, seen from outside; and a server that stands."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sandbox.services.spark_connect import SparkConnect
from tests.support.frozen import wait_until_frozen

_THREAD: Final = "SparkConnectExecuteThread"
_NAME_LENGTH: Final = 15
"""As much of a thread's name Linux keeps."""


def works_of(server: SparkConnect) -> set[int]:
    """The requests that the server carries out now, by the number of each one's thread."""
    return {
        int(thread.parent.name)
        for thread in Path(f"/proc/{server.pid}/task").glob("*/comm")
        if _name_of(thread) == _THREAD[:_NAME_LENGTH]
    }


@contextmanager
def frozen(server: SparkConnect) -> Iterator[None]:
    """The server stands still, whatever it does, and goes on afterwards."""
    pids = server.members()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        for pid in pids:
            wait_until_frozen(pid)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _name_of(thread: Path) -> str | None:
    try:
        return thread.read_text().strip()
    except OSError:  # it has just ended
        return None
