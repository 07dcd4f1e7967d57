"""One landed Parquet file: opened, checked for the columns that were landed, read by row group.

Every page's checksum is verified: nobody else does, and most flipped bits would come back as wrong
data. Whatever pyarrow says of a damaged file becomes ManifestMismatch with the file's path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tallystick.errors import ManifestMismatch
from tallystick.storage.compact_thrift import ThriftStruct
from tallystick.storage.parquet_pages import PagedRowGroup, footer_of
from tallystick.storage.ranged_file import Fetch, RangedFile

EXPECTED: Final = "a whole Parquet file as landed"
COORDINATES: Final = ("partition", "offset")
CONTENT: Final = ("timestamp", "key", "value", "headers")
_TYPES: Final[dict[str, tuple[Any, ...]]] = {
    "partition": (pa.int32(),),
    "offset": (pa.int64(),),
}


class LandedParquet:
    """One file, its footer read; raises ManifestMismatch where it isn't what was landed."""

    def __init__(self, path: str, fetch: Fetch, length: int) -> None:
        self.path = path
        self._length = length
        self._file = RangedFile(fetch, length)
        with self._mismatch():
            self._parquet = pq.ParquetFile(self._file, page_checksum_verification=True)
        self.metadata = self._parquet.metadata
        self._require_columns()
        self._leaves = {
            column: [
                leaf
                for leaf in range(self.metadata.num_columns)
                if self.metadata.schema.column(leaf).path.split(".")[0] == column
            ]
            for column in self._parquet.schema_arrow.names
        }

    def batches(
        self, row_group: int, columns: Sequence[str], *, most_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """The columns of a row group, at most so many rows at a time.

        One request fetches them where they lie side by side.
        """
        expected = self.metadata.row_group(row_group).num_rows
        if not expected:
            return
        with self._mismatch():
            self._file.load(self._pieces(row_group, columns))
            batches = self._parquet.iter_batches(
                batch_size=most_rows,
                row_groups=[row_group],
                columns=list(columns),
                use_threads=False,
            )
        found = 0
        while True:
            with self._mismatch():
                batch = next(batches, None)
            if batch is None:
                break
            found += batch.num_rows
            yield batch
        if found != expected:
            raise self._wrong(f"{found} rows where the footer says {expected}")

    def by_pages(
        self, row_group: int, columns: Sequence[str], runs: Sequence[tuple[int, int]]
    ) -> Mapping[str, Any] | None:
        """All rows of the runs [from, until) of a row group, by the path of each leaf.

        Only the pages that hold them are fetched. None where the file does not say which they are.
        """
        self._require_all(columns)
        with self._told_pages():
            group = PagedRowGroup.of(self._file, self._footer, row_group, columns)
            return group.rows(runs) if group else None

    def rows_meeting(
        self, row_group: int, column: str, bounds: Sequence[tuple[int, int]]
    ) -> Sequence[tuple[int, int]] | None:
        """The rows [from, until), as runs, of the pages that may hold one of these [first, until).

        None where the file does not say what its pages hold. For a column of whole numbers.
        """
        with self._told_pages():
            group = PagedRowGroup.of(self._file, self._footer, row_group, [column])
            return group.rows_meeting(bounds) if group else None

    def bytes_per_row(self, row_group: int) -> float:
        """Mean size of a row in memory, all columns."""
        group = self.metadata.row_group(row_group)
        return float(group.total_byte_size) / max(1, group.num_rows)

    def may_hold(self, row_group: int, column: str, value: int) -> bool:
        """False if the footer's statistics rule this value out."""
        return self.may_meet(row_group, column, value, value + 1)

    def may_meet(self, row_group: int, column: str, first: int, until: int) -> bool:
        """False if the footer's statistics rule out every value of [first, until)."""
        statistics = self.metadata.row_group(row_group).column(self._leaves[column][0]).statistics
        if statistics is None or not statistics.has_min_max:
            return True
        return bool(statistics.min < until and first <= statistics.max)

    def _pieces(self, row_group: int, columns: Sequence[str]) -> list[tuple[int, int]]:
        group = self.metadata.row_group(row_group)
        pieces: list[tuple[int, int]] = []
        self._require_all(columns)
        for leaf in (leaf for column in columns for leaf in self._leaves[column]):
            chunk = group.column(leaf)
            start = chunk.data_page_offset
            if chunk.has_dictionary_page and chunk.dictionary_page_offset:
                start = min(start, chunk.dictionary_page_offset)
            if not 0 < start <= start + chunk.total_compressed_size <= self._length:
                raise self._wrong("a footer that points outside the file")
            pieces.append((start, chunk.total_compressed_size))
        return pieces

    def _require_all(self, columns: Sequence[str]) -> None:
        for column in columns:
            if column not in self._leaves:
                raise self._wrong(f"a Parquet file without column {column!r}")

    def _require_columns(self) -> None:
        schema = self._parquet.schema_arrow
        for name, accepted in _TYPES.items():
            if schema.names.count(name) != 1:
                raise self._wrong(f"a Parquet file without one column {name!r}")
            if schema.field(name).type not in accepted:
                raise self._wrong(f"column {name!r} of type {schema.field(name).type}")

    def _wrong(self, found: str) -> ManifestMismatch:
        return ManifestMismatch(self.path, EXPECTED, found)

    @cached_property
    def _footer(self) -> ThriftStruct:
        return footer_of(self._file, self._length)

    @contextmanager
    def _told_pages(self) -> Iterator[None]:
        with self._mismatch():
            try:
                yield
            except (ValueError, KeyError, IndexError, TypeError) as error:
                raise self._wrong(f"pages that can't be told apart: {error}") from error

    @contextmanager
    def _mismatch(self) -> Iterator[None]:
        """Translates what pyarrow raises of a damaged file; it raises OSError for a wrong page."""
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            words = str(error).strip().splitlines() or [type(error).__name__]
            raise self._wrong(words[0].rstrip(".")) from error
