"""Clears up behind a test run that was killed: a watcher outlives it, and ends what it has started.

`python -m tests.support.clearing_up KIND PLACE` is that watcher. It waits for its standard input to
end; a word on it says that nothing is left to do.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LEDGER, SANDBOX = "ledger", "sandbox"
_END_SECONDS: Final = 20


class Watcher:
    """Ends the services at a place when this very process is gone, unless it was called off.

    Linux could kill a child with its parent, but only with the thread that started it: services
    are started by threads that end long before. A pipe that nobody holds any more is surer.
    """

    def __init__(self, kind: str, place: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.clearing_up", kind, str(place)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def call_off(self) -> None:
        """Everything has been ended in good order."""
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate(b"done")
        self._process.wait()


def end_ledger(area: Path) -> None:
    """Stop the PostgreSQL that lives in this directory, then remove the directory."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        pid = int((area / "data" / "postmaster.pid").read_text().split("\n", 1)[0])
        if str(area) in Path(f"/proc/{pid}/cmdline").read_text():
            os.kill(pid, signal.SIGQUIT)
            deadline = time.monotonic() + _END_SECONDS
            while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
    shutil.rmtree(area, ignore_errors=True)


def end_sandbox(directory: Path) -> None:
    """Kill every service of the sandbox, and remove what they wrote."""
    from sandbox import Sandbox

    left = Sandbox(directory)
    left.kill()
    left.down(purge=True)


def main(kind: str, place: str) -> None:
    """Wait for the end of the test run, and clear up unless it did so itself."""
    if not sys.stdin.buffer.read():
        {LEDGER: end_ledger, SANDBOX: end_sandbox}[kind](Path(place))


if __name__ == "__main__":
    main(*sys.argv[1:])
