"""A gate before a real server: shut, nobody answers at its port; opened again, all is as before.

A shut gate is what clients see of a server that was killed: connections break, new ones are
refused. It opens at once, where the server itself would take seconds to come back.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Iterator

HOST = "127.0.0.1"
_LOOK_SECONDS = 0.2
_CHUNK = 1 << 16
# Close sends a reset: the other side learns at once, and no port lingers.
_AT_ONCE = struct.pack("ii", 1, 0)


class Gate:
    """Forwards one local port to another, while it is open."""

    def __init__(self, port: int, target: int) -> None:
        self.port, self._target = port, target
        self._ends: set[socket.socket] = set()
        self._turn = threading.Lock()
        self._listener: socket.socket | None = None

    def __enter__(self) -> Gate:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.shut()

    @property
    def is_open(self) -> bool:
        return self._listener is not None

    def open(self) -> None:
        """Let everybody through from now on."""
        if self._listener is None:
            self._listener = socket.create_server((HOST, self.port), backlog=128)
            threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def shut(self) -> None:
        """Break every connection, and refuse new ones."""
        with self._turn:
            if self._listener is not None:
                with contextlib.suppress(OSError):
                    self._listener.shutdown(socket.SHUT_RDWR)
                self._listener.close()
                self._listener = None
            for end in self._ends:
                _reset(end)
            self._ends.clear()

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        """Shut while the block runs, open afterwards."""
        self.shut()
        try:
            yield
        finally:
            self.open()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                if self._listener is not listener:
                    return
                continue
            try:
                server = socket.create_connection((HOST, self._target), timeout=5)
            except OSError:
                _reset(client)
                continue
            server.settimeout(None)
            with self._turn:
                if self._listener is not listener:
                    _reset(client)
                    _reset(server)
                    return
                self._ends |= {client, server}
            threading.Thread(target=self._carry, args=(client, server), daemon=True).start()

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        """Carry bytes both ways until one side has enough."""
        other = {client: server, server: client}
        with contextlib.suppress(OSError, ValueError):
            while True:
                ready, _, _ = select.select([client, server], [], [], _LOOK_SECONDS)
                for end in ready:
                    data = end.recv(_CHUNK)
                    if not data:
                        return self._forget(client, server)
                    other[end].sendall(data)
        self._forget(client, server)

    def _forget(self, *ends: socket.socket) -> None:
        with self._turn:
            self._ends -= set(ends)
        for end in ends:
            end.close()


def _reset(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
        # Wakes whoever waits for bytes in another thread.
        end.shutdown(socket.SHUT_RDWR)
    end.close()
