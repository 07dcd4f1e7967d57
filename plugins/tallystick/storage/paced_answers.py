"""How long an answer may take as a whole, not only from one byte to the next.

1. A piece of `PIECE_BYTES`, or the whole of a smaller answer with its head, must have come within
   the time that a request has. So a small answer is bounded as a whole, and a large one by a pace:
   its time grows with what it brings, as a range of a file or a long listing must be allowed to.
2. What came fast is no credit: who sends a range quickly and drips its last bytes has the time of
   one piece.
3. Only what is read from the socket counts, not what its reader does in between.
"""

from __future__ import annotations

import http.client
import io
import time
from typing import Any, Final

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

PIECE_BYTES: Final = 1 << 16


class PacedAdapter(HTTPAdapter):
    """What a session asks by; the time is the one that it gives a request for reading."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Give the pools connections that read as this module says."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}


class _Paced(io.RawIOBase):
    """The bytes of one answer; raises TimeoutError when a piece does not come in time."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self._raw = sock.makefile("rb", buffering=0)
        self._seconds: float | None = sock.gettimeout()
        self._left = self._seconds
        self._piece = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self._left is None:
            return int(self._raw.readinto(buffer))
        if self._left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(self._left)
        began = time.monotonic()
        count = int(self._raw.readinto(buffer))
        self._left -= time.monotonic() - began
        self._piece += count
        if self._piece >= PIECE_BYTES:
            self._piece, self._left = 0, self._seconds
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Source:
    """In place of the socket, of which an answer wants a file alone."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Paced(self._sock))


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: Any, *args: Any, **options: Any) -> None:
        super().__init__(_Source(sock), *args, **options)  # type: ignore[arg-type]


class _Connection(HTTPConnection):
    response_class = _Answer


class _SecureConnection(HTTPSConnection):
    response_class = _Answer


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection
