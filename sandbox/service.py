"""What all services share: how one is started, waited for, stopped and killed.

What a service is, its own module says.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sandbox import processes
from sandbox.entry.system import ensure_java
from sandbox.errors import SandboxError, ServiceFailed
from sandbox.ports import Ports
from sandbox.processes import Session
from sandbox.state import State

POLL_SECONDS = 0.15
# Half the CPU time of a start; on one machine the second compiler pays after half a minute only.
QUICK_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


@dataclass(frozen=True, slots=True)
class Home:
    """The state directory that services live in, with what it remembers."""

    directory: Path
    state: State
    ports: Ports
    interrupted: threading.Event = field(default_factory=threading.Event)

    def folder(self, *parts: str) -> Path:
        """A directory below the state directory, made if missing."""
        path = self.directory.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def outside(self, name: str) -> Path:
        """A directory for what cannot live below the state directory; always the same, not made.

        It goes with the state, not with its path: what a deleted checkout has left there has
        passwords that nobody knows any more.
        """
        place = self.state.once("outside", secrets.token_hex(6))
        return Path("/var/tmp") / f"tallystick-{name}-{place}"


class Service(ABC):
    """One server process with everything it starts."""

    ready_seconds = 180.0  # a bound for machines that are busy with other things
    grace_seconds = 15.0
    stop_signal = signal.SIGTERM

    def __init__(self, home: Home, name: str, *, port_names: Sequence[str] = ()) -> None:
        self.home = home
        self.name = name
        self.port_names = tuple(port_names)

    @property
    @abstractmethod
    def address(self) -> str:
        """Where clients reach it."""

    @property
    @abstractmethod
    def memory(self) -> str:
        """Its memory limit, for people."""

    @abstractmethod
    def prepare(self) -> None:
        """Write configuration and, the first time, format storage; ports are chosen by now."""

    @abstractmethod
    def command(self) -> Sequence[str]:
        """The program to run."""

    @abstractmethod
    def missing(self) -> str | None:
        """What it still lacks to be ready; None when it is."""

    def provision(self) -> None:
        """Make what belongs into the running service.

        Called each time it became ready, so all may be there already. Most services need nothing.
        """
        return

    def purge(self) -> None:
        """Delete its data and configuration; it must not run."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def environment(self) -> Mapping[str, str]:
        """The environment it runs in."""
        return os.environ

    @property
    def run_as(self) -> str | None:
        """The user to run as; None for the present one."""
        return None

    @property
    def log(self) -> Path:
        """Its log file."""
        return self.home.folder("logs") / f"{self.name}.log"

    @property
    def folder(self) -> Path:
        """Its working directory."""
        return self.home.folder(self.name)

    @property
    def pid(self) -> int | None:
        """The number of its main process; None if it does not run."""
        session = self._current()
        return session.leader if session is not None else None

    @property
    def is_running(self) -> bool:
        """True while its main process lives."""
        return self._current() is not None

    def start(self, *, wait: bool = True) -> None:
        """Start it unless it runs; ``wait`` until it is ready.

        Raises ServiceFailed with the end of its log.
        """
        if not self.is_running:
            self.home.ports.claim(*self.port_names)
            try:
                self.prepare()
                session = processes.spawn(
                    self.command(),
                    env=self.environment(),
                    cwd=self.folder,
                    log=self.log,
                    user=self.run_as,
                )
            except BaseException:
                self.home.ports.release(*self.port_names)
                raise
            self.home.state.remember_sessions(self.name, [*self._with_members(), session])
        if wait:
            self.wait()

    def wait(self) -> None:
        """Return when it is ready. Raises ServiceFailed if it dies or takes too long."""
        deadline = time.monotonic() + self.ready_seconds
        try:
            while (lack := self.missing()) is not None:
                if not self.is_running:
                    raise ServiceFailed(self.name, "died while starting", self.log)
                if self.home.interrupted.is_set():
                    raise SandboxError(f"waiting for {self.name} was interrupted")
                if time.monotonic() > deadline:
                    raise ServiceFailed(
                        self.name,
                        f"is not ready after {self.ready_seconds:.0f} s: {lack}",
                        self.log,
                    )
                time.sleep(POLL_SECONDS)
            self.provision()
        finally:
            self.home.ports.release(*self.port_names)

    def stop(self) -> None:
        """End it in good order, then by force what remains; nothing of it is left."""
        for session in self._with_members():
            processes.stop(session, with_signal=self.stop_signal, grace_seconds=self.grace_seconds)
        self._forget_ended()

    def kill(self, *, whole_session: bool = True) -> None:
        """SIGKILL; of what it started too, unless that shall be left behind as by a real crash."""
        for session in self._with_members():
            if whole_session:
                processes.kill(session)
            else:
                processes.kill_leader(session)
        self._forget_ended()

    def members(self) -> list[int]:
        """The numbers of all processes that belong to it, those of former starts included."""
        return [
            p.pid for session in self.home.state.sessions(self.name) for p in session.processes()
        ]

    def _current(self) -> Session | None:
        sessions = self.home.state.sessions(self.name)
        return sessions[-1] if sessions and sessions[-1].leads() else None

    def _with_members(self) -> list[Session]:
        return [session for session in self.home.state.sessions(self.name) if session.processes()]

    def _forget_ended(self) -> None:
        self.home.state.remember_sessions(self.name, self._with_members())


def make_private(folder: Path) -> None:
    """Make a directory in a place that is open to all. Raises SandboxError if it is not ours."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink() or (folder.stat().st_uid != os.geteuid() and os.geteuid() != 0):
        raise SandboxError(f"{folder} is not ours. Next: remove it, or move the sandbox")


def java(
    *options: str, classpath: Sequence[Path | str], main: str, arguments: Sequence[str] = ()
) -> list[str]:
    """The command line of a Java program."""
    return [
        str(ensure_java() / "bin" / "java"),
        "-Djava.net.preferIPv4Stack=true",
        *QUICK_JVM,
        *options,
        "-cp",
        os.pathsep.join(str(entry) for entry in classpath),
        main,
        *arguments,
    ]


def program(name: str) -> str:
    """The path of a program of the virtual environment."""
    return str(Path(sys.executable).with_name(name))
