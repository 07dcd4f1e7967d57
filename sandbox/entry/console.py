"""Says what set-up is doing, and runs its commands.

Speaks on standard error only: standard output belongs to the command that follows (``--json``).
"""

from __future__ import annotations

import contextlib
import fcntl
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

TAIL_LINES = 15


class SetupFailed(Exception):
    """Set-up cannot go on; the text says what happened and what to do next."""

    exit_code = 2


def say(text: str) -> None:
    """Print one line of progress to standard error."""
    sys.stderr.write(f"tallystick: {text}\n")
    sys.stderr.flush()


def run(argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> bool:
    """True if the command succeeded. Its output is appended to the log file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as out:
        out.write(f"\n$ {' '.join(argv)}\n".encode())
        out.flush()
        return (
            subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, check=False
            ).returncode
            == 0
        )


def tail_of(log: Path) -> str:
    """The last lines of a log file, indented; empty if there is none."""
    if not log.exists():
        return ""
    lines = log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
    return "\n".join(f"    {line}" for line in lines)


@contextlib.contextmanager
def only_one(lock_file: Path, *, meanwhile: str) -> Iterator[None]:
    """Hold the lock file, freed by the holder's death; a second caller says so and waits."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with lock_file.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(meanwhile)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
