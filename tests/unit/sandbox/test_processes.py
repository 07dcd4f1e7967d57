"""Sessions: known again by number, start and boot; ended whole."""

import contextlib
import dataclasses
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from sandbox import processes
from sandbox.processes import Session

# A leader with a child in a process group of its own that ignores SIGTERM, as Airflow's workers do.
STUBBORN = """
import os, signal, time
if os.fork() == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open("ready", "w").close()
while True:
    time.sleep(60)
"""

# Its main thread ends, and another one goes on.
HALF_DEAD = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    argv = [sys.executable, "-c", STUBBORN]
    started = processes.spawn(argv, env=os.environ, cwd=tmp_path, log=tmp_path / "log")
    assert processes.wait_until((tmp_path / "ready").exists, 20)
    yield started
    processes.kill(started)


def test_a_session_holds_leader_and_child(session: Session) -> None:
    assert session.leads()
    assert len(session.processes()) == 2


def test_the_child_is_still_known_when_the_leader_is_dead(session: Session) -> None:
    processes.kill_leader(session)
    assert not session.leads()
    (orphan,) = session.processes()
    assert orphan.pid != session.leader


def test_a_leader_of_which_a_thread_still_lives_is_not_dead(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", HALF_DEAD]
    session = processes.spawn(argv, env=os.environ, cwd=tmp_path, log=tmp_path / "log")
    leader = psutil.Process(session.leader)
    try:
        assert processes.wait_until(lambda: leader.status() == psutil.STATUS_ZOMBIE, 20)
        assert session.leads()
        processes.kill(session)
        assert not session.leads()
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            leader.kill()


def test_stopping_ends_what_ignores_the_signal(session: Session) -> None:
    members = session.processes()
    processes.stop(session, with_signal=signal.SIGTERM, grace_seconds=0.2)
    assert session.processes() == []
    assert not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in members)


def test_killing_leaves_nothing(session: Session) -> None:
    processes.kill(session)
    assert session.processes() == []


@pytest.mark.parametrize(
    "change", [{"started_ticks": 1}, {"boot": "another"}], ids=["number re-used", "rebooted"]
)
def test_a_stranger_with_the_same_number_is_not_ours(
    session: Session, change: dict[str, int | str]
) -> None:
    stale = dataclasses.replace(session, **change)  # type: ignore[arg-type]
    assert not stale.leads()
    assert stale.processes() == []


def test_a_program_started_by_a_name_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        processes.spawn(["/no/such/program"], env={}, cwd=tmp_path, log=tmp_path / "log")
