"""What a sandbox remembers between commands: ports, secrets, process sessions.

One JSON file, mode 600, replaced atomically, so that a crash leaves the old one or the new one. It
is written before anybody waits for the process it names.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock

from sandbox.processes import Session

SECRET_BYTES = 24


class State:
    """The remembered facts of one state directory; threads and processes may share it."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "state.json"
        self._lock = FileLock(directory / "state.lock", thread_local=False)
        self._turn = threading.RLock()

    def port(self, name: str) -> int | None:
        """The port chosen for a name; None before the first choice."""
        found: int | None = self._read()["ports"].get(name)
        return found

    def remember_port(self, name: str, port: int) -> None:
        """Keep a port over restarts."""
        with self._changed() as facts:
            facts["ports"][name] = port

    def secret(self, name: str) -> str:
        """A random password or key, the same for ever after."""
        return str(self.once(f"secret:{name}", secrets.token_urlsafe(SECRET_BYTES)))

    def once(self, name: str, value: Any) -> Any:
        """The value first given for this name; later values are ignored."""
        known = self.fact(name)
        if known is not None:
            return known
        with self._changed() as facts:
            return facts["facts"].setdefault(name, value)

    def replace(self, name: str, value: Any) -> None:
        """Set a fact anew."""
        with self._changed() as facts:
            facts["facts"][name] = value

    def fact(self, name: str, default: Any = None) -> Any:
        """A fact set before; the default otherwise."""
        return self._read()["facts"].get(name, default)

    def sessions(self, service: str) -> list[Session]:
        """The sessions started for a service that may still have members, newest last."""
        return [Session(**fields) for fields in self._read()["sessions"].get(service, [])]

    def remember_sessions(self, service: str, sessions: list[Session]) -> None:
        """Replace what is known of a service's sessions."""
        with self._changed() as facts:
            facts["sessions"][service] = [session.as_fields() for session in sessions]

    def _read(self) -> dict[str, dict[str, Any]]:
        empty: dict[str, dict[str, Any]] = {"ports": {}, "facts": {}, "sessions": {}}
        return empty | json.loads(self._file.read_text()) if self._file.exists() else empty

    @contextlib.contextmanager
    def _changed(self) -> Iterator[dict[str, dict[str, Any]]]:
        with self._turn, self._lock:
            facts = self._read()
            yield facts
            write_private(self._file, json.dumps(facts, indent=1, sort_keys=True))


def write_private(file: Path, text: str) -> None:
    """Replace a file by one that only its owner may read; synced, for the machine may crash."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(file)
