"""A proxy before a Kafka broker that damages what it hands on, for clients that read bad bytes."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_LENGTH = struct.Struct(">i")
Damage = Callable[[bytes], bytes]


@contextmanager
def damaging_proxy(servers: str, damage: Damage) -> Iterator[str]:
    """The proxy's address; each answer goes through `damage`, and keeps its length.

    Clients stay behind the proxy: the broker's own port is replaced wherever an answer names it.
    """
    host, _, port = servers.rpartition(":")
    listener = socket.create_server(("127.0.0.1", 0))
    own = listener.getsockname()[1]
    theirs, ours = (host.encode() + _LENGTH.pack(int(each)) for each in (port, own))

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                broker = socket.create_connection((host, int(port)))
                for source, target, change in (
                    (client, broker, bytes),
                    (broker, client, lambda answer: damage(answer.replace(theirs, ours))),
                ):
                    threading.Thread(
                        target=_forward, args=(source, target, change), daemon=True
                    ).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"127.0.0.1:{own}"
    finally:
        listener.close()


def _forward(source: socket.socket, target: socket.socket, change: Damage) -> None:
    """Frame by frame, until one side ends."""
    with source, target, suppress(OSError):
        stream = source.makefile("rb")
        while head := stream.read(_LENGTH.size):
            frame = stream.read(_LENGTH.unpack(head)[0])
            target.sendall(head + change(frame))
