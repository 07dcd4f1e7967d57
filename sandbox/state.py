"""What a sandbox remembers between commands: ports, secrets, process sessions.

One JSON file, mode 600, replaced atomically, so that a crash leaves the old one or the new one. It is written
before anybody waits for the process it names.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from pathlib import Path
from typing import Any

from sandbox.processes import Session

SECRET_BYTES = 24


class State:
    """The remembered facts of one state directory; safe to use from several threads of one process."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "state.json"
        self._lock = threading.RLock()
        self._facts: dict[str, Any] = json.loads(self._file.read_text()) if self._file.exists() else {}

    def port(self, name: str) -> int | None:
        """The port chosen for a name; None before the first choice."""
        with self._lock:
            return self._section("ports").get(name)

    def remember_port(self, name: str, port: int) -> None:
        """Keep a port over restarts."""
        with self._lock:
            self._section("ports")[name] = port
            self._write()

    def secret(self, name: str) -> str:
        """A random password or key, the same for ever after."""
        with self._lock:
            return str(self.once(f"secret:{name}", secrets.token_urlsafe(SECRET_BYTES)))

    def once(self, name: str, value: Any) -> Any:
        """The value first given for this name; later values are ignored."""
        with self._lock:
            facts = self._section("facts")
            if name not in facts:
                facts[name] = value
                self._write()
            return facts[name]

    def replace(self, name: str, value: Any) -> None:
        """Set a fact anew."""
        with self._lock:
            self._section("facts")[name] = value
            self._write()

    def fact(self, name: str, default: Any = None) -> Any:
        """A fact set before; the default otherwise."""
        with self._lock:
            return self._section("facts").get(name, default)

    def sessions(self, service: str) -> list[Session]:
        """The sessions started for a service that may still have members, newest last."""
        with self._lock:
            return [Session(**fields) for fields in self._section("sessions").get(service, [])]

    def services(self) -> list[str]:
        """The services with remembered sessions."""
        with self._lock:
            return list(self._section("sessions"))

    def remember_sessions(self, service: str, sessions: list[Session]) -> None:
        """Replace what is known of a service's sessions."""
        with self._lock:
            self._section("sessions")[service] = [session.as_fields() for session in sessions]
            self._write()

    def _section(self, name: str) -> dict[str, Any]:
        section: dict[str, Any] = self._facts.setdefault(name, {})
        return section

    def _write(self) -> None:
        write_private(self._file, json.dumps(self._facts, indent=1, sort_keys=True))


def write_private(file: Path, text: str) -> None:
    """Replace a file by one that only its owner may read; synced, for the machine may crash."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}.{threading.get_ident()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(file)
