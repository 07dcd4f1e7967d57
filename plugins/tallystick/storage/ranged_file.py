"""A remote file as pyarrow wants one, read in few large pieces that are asked for beforehand."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Final

# A footer of a thousand row groups fits, or of a dozen with their page indexes.
TAIL_BYTES: Final = 256 * 1024
# Two pieces this close are fetched as one: a request costs more than the bytes between.
JOIN_GAP_BYTES: Final = 1024 * 1024

Fetch = Callable[[int, int], bytes]


class RangedFile(io.RawIOBase):
    """Reads by `fetch(position, length)`; the tail of the file is fetched at once.

    What was neither in the tail nor asked for by `load` is fetched when it is read, exactly.
    `length` is the file's.
    """

    def __init__(self, fetch: Fetch, length: int) -> None:
        super().__init__()
        self._fetch = fetch
        self.length = length
        self._position = 0
        tail = max(0, length - TAIL_BYTES)
        self._tail = (tail, fetch(tail, length - tail) if length else b"")
        self._loaded: list[tuple[int, bytes]] = []

    def load(self, pieces: Iterable[tuple[int, int]]) -> None:
        """Fetch these (position, length) pieces, neighbours together, and drop the former ones."""
        self._loaded = []
        self._loaded = [
            (position, self._fetch(position, length))
            for position, length in _joined(pieces)
            if self._kept(position, length) is None
        ]

    def readable(self) -> bool:
        """True: that is all it can do."""
        return True

    def seekable(self) -> bool:
        """True: Parquet files are read from their end."""
        return True

    def tell(self) -> int:
        """Where the next read begins."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move the next read; the new position."""
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self.length}[whence]
        self._position = max(0, origin + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """The next `size` bytes; fewer only at the end of the file."""
        left = max(0, self.length - self._position)
        length = left if size is None or size < 0 else min(size, left)
        if not length:
            return b""
        kept = self._kept(self._position, length)
        content = self._fetch(self._position, length) if kept is None else kept
        self._position += length
        return content

    def _kept(self, position: int, length: int) -> bytes | None:
        for start, content in (self._tail, *self._loaded):
            if start <= position and position + length <= start + len(content):
                return content[position - start : position - start + length]
        return None


def _joined(pieces: Iterable[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """The pieces in order, those with a small gap between as one."""
    joined: list[tuple[int, int]] = []
    for position, length in sorted(pieces):
        if joined and position <= joined[-1][0] + joined[-1][1] + JOIN_GAP_BYTES:
            start, former = joined[-1]
            joined[-1] = (start, max(former, position + length - start))
        else:
            joined.append((position, length))
    return joined
