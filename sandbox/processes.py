"""Starts a service as leader of a session of its own, knows it again, and ends the whole session.

The work below is psutil's: listing, signalling and waiting without mistaking a re-used process
number. The other kept libraries do not serve. mirakuru kills its processes when the starting
program exits, and finds stray ones by their environment, which Airflow's process titles overwrite.
honcho keeps everything in the foreground. supervisor and circus need a daemon of their own and
stop by process group, while every Airflow task has its own group. What Airflow's workers, tasks,
JVMs and drivers do share, also after their parent's death, is the session.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

POLL_SECONDS = 0.05
KILL_SECONDS = 10.0

# Children of this very program: kept so that they can be reaped, and are not waited for at exit.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class Session:
    """A process session, known by its leader's number and start, and by the boot both belong to."""

    leader: int
    started_ticks: int
    boot: str

    def as_fields(self) -> dict[str, int | str]:
        """The fields as JSON can hold them."""
        return asdict(self)

    def leads(self) -> bool:
        """True while the leader lives."""
        return (
            self.boot == _boot_id()
            and _is_alive(self.leader)
            and _started_ticks(self.leader) == self.started_ticks
        )

    def processes(self) -> list[psutil.Process]:
        """Everything alive in the session, and below its leader; empty after a reboot.

        A session's number is not re-used while it has members, so members outlive their leader's
        identity; members that are older than the leader would be another session's.
        """
        if self.boot != _boot_id():
            return []
        leader_ticks = _started_ticks(self.leader)
        if leader_ticks is not None and leader_ticks != self.started_ticks:
            return []
        found = {p.pid: p for p in psutil.process_iter() if self._has_member(p.pid)}
        if self.leads():
            with contextlib.suppress(psutil.Error):
                # PostgreSQL's servers open sessions of their own.
                below = psutil.Process(self.leader).children(recursive=True)
                found |= {p.pid: p for p in below}
        return [p for p in found.values() if _is_alive(p.pid)]

    def _has_member(self, pid: int) -> bool:
        try:
            if os.getsid(pid) != self.leader:
                return False
        except (ProcessLookupError, PermissionError):
            return False
        return (_started_ticks(pid) or 0) >= self.started_ticks


def spawn(
    argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, log: Path, user: str | None = None
) -> Session:
    """The session of a new process that outlives this program; the log takes its output."""
    with log.open("ab") as out:
        child = subprocess.Popen(
            argv,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
    _children[child.pid] = child
    return Session(child.pid, _started_ticks(child.pid) or 0, _boot_id())


def stop(session: Session, *, with_signal: signal.Signals, grace_seconds: float) -> None:
    """Ask the leader to end, wait for the session up to the grace, then kill what is left of it."""
    below = session.processes()
    if session.leads():
        with contextlib.suppress(psutil.Error):
            psutil.Process(session.leader).send_signal(with_signal)
    wait_until(lambda: not _alive(below) and not session.processes(), grace_seconds)
    kill(session, also=below)


def kill(session: Session, *, also: Sequence[psutil.Process] = ()) -> None:
    """SIGKILL every process of the session, those it starts meanwhile too, and see them gone."""
    below = list(also)

    def nothing_left() -> bool:
        below.extend(session.processes())
        for process in _alive(below):
            with contextlib.suppress(psutil.Error):
                process.kill()
        return not _alive(below) and not session.processes()

    wait_until(nothing_left, KILL_SECONDS)


def kill_leader(session: Session) -> None:
    """Kill the leader alone and see it gone; what it started may live on, as after a real crash."""
    if session.leads():
        with contextlib.suppress(psutil.Error):
            psutil.Process(session.leader).kill()
    wait_until(lambda: not session.leads(), KILL_SECONDS)


def wait_until(check: Callable[[], bool], seconds: float) -> bool:
    """True as soon as the check holds; False if it did not within the time."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def _alive(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    return [p for p in processes if p.is_running() and _is_alive(p.pid)]


def _is_alive(pid: int) -> bool:
    """True unless the process is gone or only waits to be reaped.

    A leader that waits while a thread of it still ends holds its ports yet.
    """
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
        del _children[pid]
        return False
    try:
        is_zombie = psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        return not is_zombie or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except (psutil.Error, OSError):
        return False


def _started_ticks(pid: int) -> int | None:
    """The process's start in clock ticks since boot; None if it is gone.

    Read from the kernel because psutil gives wall-clock time, which moves when the clock is set.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(stat.rpartition(")")[2].split()[19])


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
