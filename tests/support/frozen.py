"""When a process that was told to stop stands still."""

from __future__ import annotations

from pathlib import Path

from sandbox.processes import wait_until

_SECONDS = 10
_STOPPED = "T"


def wait_until_frozen(pid: int) -> None:
    """Return when each thread stands still: SIGSTOP is on its way to them when `kill` returns."""
    assert wait_until(lambda: _states(pid) <= {_STOPPED}, _SECONDS), _states(pid)


def _states(pid: int) -> set[str]:
    return {_state(each) for each in Path(f"/proc/{pid}/task").glob("*/stat")} - {""}


def _state(stat: Path) -> str:
    try:
        # The name before it may hold spaces and brackets.
        return stat.read_text().rpartition(")")[2].split()[0]
    except OSError:  # the thread has just ended
        return ""
