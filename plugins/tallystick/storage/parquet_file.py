"""One landed Parquet file: opened, checked for the columns that were landed, read by row group.

Its tail is fetched once, all else when it is read.

1. Every page's checksum is verified: nobody else does, and most flipped bits would come back as
   wrong data. Whatever is found wrong in a damaged file becomes ManifestMismatch with its path.
2. Nobody asks pyarrow what the footer says of a column's pieces, nor for their statistics: of a
   damaged footer that answer may end the process. `pre_buffer` finds the pieces by itself, safely.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tallystick.errors import ManifestMismatch
from tallystick.storage.run_table import numbers_of

EXPECTED: Final = "a whole Parquet file as landed"
COORDINATES: Final = ("partition", "offset")
CONTENT: Final = ("timestamp", "key", "value", "headers")
_HEADER: Final = [("key", pa.string()), ("value", pa.binary())]
_IS_AS_LANDED: Final = {
    "partition": pa.types.is_int32,
    "offset": pa.types.is_int64,
    "timestamp": pa.types.is_timestamp,
    "timestamp_type": pa.types.is_int32,
    "key": pa.types.is_binary,
    "value": pa.types.is_binary,
    "headers": lambda kind: (
        pa.types.is_list(kind)
        and pa.types.is_struct(kind.value_type)
        and [(each.name, each.type) for each in kind.value_type] == _HEADER
    ),
}
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


class LandedParquet:
    """One file, its footer read; raises ManifestMismatch where it isn't what was landed."""

    def __init__(self, path: str, fetch: Fetch, length: int) -> None:
        self.path = path
        with self.told():
            self._parquet = pq.ParquetFile(
                RangedFile(fetch, length), pre_buffer=True, page_checksum_verification=True
            )
        self.metadata = self._parquet.metadata
        self._require(COORDINATES)

    def batches(
        self, row_group: int, columns: Sequence[str], *, most_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The columns of a row group, at most so many rows at a time.

        One request fetches them where they lie side by side.
        """
        self._require(columns)
        expected = self.metadata.row_group(row_group).num_rows
        if not expected:
            return
        with self.told():
            batches = self._parquet.iter_batches(
                batch_size=most_rows,
                row_groups=[row_group],
                columns=list(columns),
                use_threads=False,
            )
        found = 0
        while True:
            with self.told():
                batch = next(batches, None)
            if batch is None:
                break
            found += batch.num_rows
            yield batch
        if found != expected:
            raise self._wrong(f"{found} rows where the footer says {expected}")

    def numbers(self, name: str, column: Any) -> Any:
        """A column of integers as it lies in memory."""
        if column.null_count:
            raise self._wrong(f"rows without {name}")
        return numbers_of(column)

    def headers(self, column: Iterable[Any]) -> Iterator[list[tuple[str, bytes | None]]]:
        """The headers of each row."""
        for each in column:
            try:
                found = [(one["key"], one["value"]) for one in each or ()]
            except TypeError:
                raise self._wrong("a header that is null") from None
            if any(name is None for name, _ in found):
                raise self._wrong("a header without a name")
            yield found

    def bytes_per_row(self, row_group: int) -> float:
        """Mean size of a row in memory, all columns."""
        group = self.metadata.row_group(row_group)
        return float(group.total_byte_size) / max(1, group.num_rows)

    def _require(self, columns: Sequence[str]) -> None:
        schema = self._parquet.schema_arrow
        for name in columns:
            if schema.names.count(name) != 1:
                raise self._wrong(f"a Parquet file without one column {name!r}")
            if not _IS_AS_LANDED[name](schema.field(name).type):
                raise self._wrong(f"column {name!r} of type {schema.field(name).type}")

    def _wrong(self, found: str) -> ManifestMismatch:
        return ManifestMismatch(self.path, EXPECTED, found)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Translates what is raised of a damaged file; pyarrow has OSError for a wrong page."""
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            words = str(error).strip().splitlines() or [type(error).__name__]
            raise self._wrong(words[0].rstrip(".")) from error
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            raise self._wrong(f"a footer that can't be read: {error}") from error
