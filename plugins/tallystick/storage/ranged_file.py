"""A remote file as pyarrow wants one: its tail is fetched once, all else when it is read."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Final

# A footer of a thousand row groups fits.
TAIL_BYTES: Final = 256 * 1024

Fetch = Callable[[int, int], bytes]


class RangedFile(io.RawIOBase):
    """Reads by `fetch(position, length)`; the tail of the file is fetched at once.

    What is not in the tail is fetched when it is read, exactly. `length` is the file's.
    """

    def __init__(self, fetch: Fetch, length: int) -> None:
        super().__init__()
        self._fetch = fetch
        self.length = length
        self._position = 0
        tail = max(0, length - TAIL_BYTES)
        self._tail = (tail, fetch(tail, length - tail) if length else b"")

    def readable(self) -> bool:
        """True: that is all it can do."""
        return True

    def seekable(self) -> bool:
        """True: Parquet files are read from their end."""
        return True

    def tell(self) -> int:
        """Says where the next read begins."""
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
        start, tail = self._tail
        place = self._position - start
        is_kept = place >= 0
        content = tail[place : place + length] if is_kept else self._fetch(self._position, length)
        self._position += length
        return content
