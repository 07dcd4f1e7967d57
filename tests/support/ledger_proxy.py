"""A wire to PostgreSQL that can be cut at COMMIT: before it arrives, or before its answer does."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from enum import Enum
from types import TracebackType
from typing import Final

_WAIT_SECONDS: Final = 20


class Cut(Enum):
    """Where the wire breaks, once."""

    NOWHERE = "nowhere"
    REQUEST = "the request never reaches the server"
    ANSWER = "the server does what it was asked, its answer is lost"
    LATE = "the client is cut off; the request reaches the server when `deliver` is called"


class _Wire:
    """One client's connection, both ways."""

    def __init__(self, client: socket.socket, port: int) -> None:
        self.client = client
        self.server = socket.create_connection(("127.0.0.1", port))
        self.is_silent = False
        self.was_answered = threading.Event()

    def close(self) -> None:
        for each in (self.client, self.server):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class LedgerProxy:
    """Forwards a local port to the server; cuts the wire at the first request with the marker."""

    def __init__(self, port: int, cut: Cut = Cut.NOWHERE, *, marker: bytes = b"COMMIT\0") -> None:
        self.cut, self._marker = cut, marker
        self._target = port
        self._may_deliver, self._delivered = threading.Event(), threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._wires: list[_Wire] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> LedgerProxy:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._may_deliver.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.break_all()
        for thread in self._threads:
            thread.join(timeout=_WAIT_SECONDS)

    def break_all(self) -> None:
        """Cut every wire now."""
        for wire in self._wires:
            wire.close()

    def deliver(self) -> None:
        """Let a late request go on to the server, and wait until it is sent."""
        self._may_deliver.set()
        assert self._delivered.wait(_WAIT_SECONDS)

    def _start(self, target: Callable[..., None], *wires: _Wire) -> None:
        thread = threading.Thread(target=target, args=wires, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            wire = _Wire(client, self._target)
            self._wires.append(wire)
            self._start(self._requests, wire)
            self._start(self._answers, wire)

    def _requests(self, wire: _Wire) -> None:
        while data := _received(wire.client):
            if self.cut is not Cut.NOWHERE and self._marker in data:
                self._break(wire, data)
                break
            _send(wire.server, data)
        wire.close()

    def _answers(self, wire: _Wire) -> None:
        while data := _received(wire.server):
            if wire.is_silent:
                wire.was_answered.set()
            else:
                _send(wire.client, data)
        wire.close()

    def _break(self, wire: _Wire, data: bytes) -> None:
        cut, self.cut = self.cut, Cut.NOWHERE
        if cut is Cut.REQUEST:
            return
        wire.is_silent = True
        if cut is Cut.LATE:
            wire.client.shutdown(socket.SHUT_RDWR)
            self._may_deliver.wait(_WAIT_SECONDS)
        _send(wire.server, data)
        wire.was_answered.wait(_WAIT_SECONDS)
        self._delivered.set()


def _send(target: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):
        target.sendall(data)


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(65536)
    except OSError:
        return b""
