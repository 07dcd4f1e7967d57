"""Which ports a sandbox uses: those of last time, else the usual ones, else free ones.

Between the choice and the moment a service listens, a file lock per port in the temporary
directory keeps another sandbox of this user from choosing the same.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

from sandbox.errors import SandboxError
from sandbox.state import State

HOST = "127.0.0.1"
# Below the range from which Linux takes local ports of outgoing connections (32768 on).
FREE_FROM, FREE_UNTIL = 20_000, 32_000
TRIES = 200
# A killed server is seen as gone a moment before its last thread has closed its port.
CLOSING_SECONDS = 3.0


class Ports:
    """The ports of one sandbox; remembered in its state, their locks held until released."""

    def __init__(self, state: State, usual: Mapping[str, int]) -> None:
        self._state = state
        self._usual = usual
        self._held: dict[str, FileLock] = {}
        self.moved: list[str] = []

    def __getitem__(self, name: str) -> int:
        """The port chosen for a name."""
        port = self._state.port(name)
        if port is None:
            raise SandboxError(
                f"no port was chosen for {name} yet. Next: start it (./tallystick sandbox up)"
            )
        return port

    def claim(self, *names: str) -> None:
        """Choose the ports of these names and hold them until ``release``.

        A remembered port that somebody else took meanwhile is replaced, which ``moved`` then tells.
        """
        for name in names:
            if name in self._held:
                continue
            for port in self._candidates(name):
                is_kept = port == self._state.port(name)
                lock = hold(port, CLOSING_SECONDS if is_kept else 0.0)
                if lock is not None:
                    self._held[name] = lock
                    self._note(name, port)
                    break
            else:
                raise SandboxError(
                    f"no free port between {FREE_FROM} and {FREE_UNTIL} on {HOST} for {name}"
                )

    def release(self, *names: str) -> None:
        """Give the locks of these names up: their services listen, or failed."""
        for name in names:
            lock = self._held.pop(name, None)
            if lock is not None:
                lock.release()

    def _candidates(self, name: str) -> Iterator[int]:
        kept = self._state.port(name)
        if kept is not None:
            yield kept
        if name in self._usual:
            yield self._usual[name]
        for _ in range(TRIES):
            yield random.randrange(FREE_FROM, FREE_UNTIL)

    def _note(self, name: str, port: int) -> None:
        wanted = self._state.port(name) or self._usual.get(name, port)
        if port != wanted:
            self.moved.append(f"port {wanted} is taken by another program: {name} uses {port}")
        self._state.remember_port(name, port)


def hold(port: int, patience_seconds: float) -> FileLock | None:
    """The lock of a port that nobody holds, and nobody listens on any more by then; else None."""
    folder = Path(tempfile.gettempdir()) / f"tallystick-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = FileLock(folder / str(port))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return None
    deadline = time.monotonic() + patience_seconds
    while not is_free(port):
        if time.monotonic() >= deadline:
            lock.release()
            return None
        time.sleep(0.05)
    return lock


def is_free(port: int) -> bool:
    """True if a server could listen on the loopback port now.

    Connections of a former server that still fade out do not count.
    """
    with contextlib.closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def answers(port: int) -> bool:
    """True if somebody accepts connections on the loopback port."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True
