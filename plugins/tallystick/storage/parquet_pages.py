"""A few rows of a large row group, without reading the rest: only the pages that hold them.

Parquet's offset index says where each page of a column begins, and with which row; its column
index, which values a page may hold. pyarrow uses neither. So the pages are cut out of the file and
put behind one another as a small Parquet file of one column, with a footer of its own, which
pyarrow reads as any other one, checksums included.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tallystick.storage.compact_thrift import ThriftList, ThriftStruct, read_struct, written
from tallystick.storage.ranged_file import RangedFile
from tallystick.storage.run_table import Numbers

MAGIC: Final = b"PAR1"
_TRAILER: Final = struct.Struct("<I4s")
_MOST_OF_A_GROUP: Final = 0.5
"""From this share of its bytes on, a row group is read whole for less."""
_LEVELS: Final = (1, 4)
"""Names on the way to a leaf: of a plain column, and of a field in a list of structs."""
_KEPT_METADATA: Final = frozenset({1, 2, 3, 4})
"""Fields of a column chunk that hold for any of its pages: type, encodings, path and codec."""


@dataclass(frozen=True, slots=True)
class _Page:
    """One data page: where it lies with its header, and which rows it holds."""

    position: int
    length: int
    from_row: int
    until_row: int


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One column chunk without children, of one row group."""

    path: tuple[bytes, ...]
    metadata: ThriftStruct
    pages: Sequence[_Page]
    dictionary: tuple[int, int] | None
    """Position and length of the dictionary page; None without one."""
    column_index: bytes | None

    def holding(self, rows: Numbers) -> list[_Page]:
        """The pages with one of these rows, in their order; the rows ascend."""
        edges = [each.from_row for each in self.pages] + [self.pages[-1].until_row]
        numbers = np.flatnonzero(np.diff(np.searchsorted(rows, edges)))
        return [self.pages[number] for number in numbers.tolist()]

    def pieces(self, pages: Sequence[_Page]) -> Iterator[tuple[int, int]]:
        """What must be fetched for these pages, as position and length."""
        if self.dictionary:
            yield self.dictionary
        for page in pages:
            yield page.position, page.length


class PagedRowGroup:
    """One row group, read by pages. `of` gives None where the file has no offset index.

    Of bytes that are damaged, or no Parquet, everything here raises what `LandedParquet.told`
    translates.
    """

    def __init__(self, file: RangedFile, footer: ThriftStruct, leaves: Sequence[_Leaf]) -> None:
        self._file, self._footer, self._leaves = file, footer, leaves

    @classmethod
    def of(
        cls, file: RangedFile, footer: ThriftStruct, row_group: int, columns: Sequence[str]
    ) -> PagedRowGroup | None:
        """These top-level columns of a row group; None where a page can't be found by its row, and
        for a list that is not written on three levels: cut out, its one field would change.
        """
        row_count = footer[4].items[row_group][3]
        chunks = [chunk for name in columns for chunk in chunks_of(footer, row_group, name)]
        if any(each.get(4) is None or each.get(5) is None for each in chunks):
            return None
        if any(len(each[3][3].items) not in _LEVELS for each in chunks):
            return None
        indexes = [(each[4], each[5]) for each in chunks]
        indexes += [place for each in chunks if (place := _column_index(each))]
        file.load(_checked(file, place) for place in indexes)
        leaves = [_leaf(file, each, row_count) for each in chunks]
        return None if any(not each.pages for each in leaves) else cls(file, footer, leaves)

    def rows_meeting(self, column: str, bounds: Sequence[tuple[int, int]]) -> Numbers | None:
        """The rows of the pages that may hold one of these [first, until) in a column of integers.

        None where the file does not say what its pages hold.
        """
        [leaf] = self._of([column])
        if leaf.column_index is None:
            return None
        index, _ = read_struct(leaf.column_index)
        found = [np.empty(0, np.int64)]
        # A page of nulls alone has empty bounds, which are read as 0.
        for page, low, high in zip(leaf.pages, index[2].items, index[3].items, strict=True):
            least, most = _number(low), _number(high)
            if any(least < until and first <= most for first, until in bounds):
                found.append(np.arange(page.from_row, page.until_row))
        return np.concatenate(found)

    def rows(self, columns: Sequence[str], rows: Numbers) -> Mapping[str, pa.Array] | None:
        """These rows, by the path of each leaf with dots; None where reading the whole row group
        costs less.

        Their numbers ascend. Only the pages that hold them are fetched.
        """
        found = [(leaf, leaf.holding(rows)) for leaf in self._of(columns)]
        pieces = [piece for leaf, pages in found for piece in leaf.pieces(pages)]
        whole = sum(leaf.metadata[7] for leaf, _ in found)
        if sum(length for _, length in pieces) >= _MOST_OF_A_GROUP * whole:
            return None
        self._file.load(_checked(self._file, piece) for piece in pieces)
        return {
            b".".join(leaf.path).decode(): self._read(leaf, pages, rows) for leaf, pages in found
        }

    def _of(self, columns: Sequence[str]) -> list[_Leaf]:
        return [each for each in self._leaves if each.path[0].decode() in columns]

    def _read(self, leaf: _Leaf, pages: Sequence[_Page], rows: Numbers) -> pa.Array:
        table = pq.ParquetFile(
            pa.BufferReader(self._small_file(leaf, pages)), page_checksum_verification=True
        ).read(use_threads=False)
        firsts = np.array([each.from_row for each in pages], np.int64)
        counts = np.array([each.until_row - each.from_row for each in pages], np.int64)
        if table.num_rows != counts.sum():
            raise ValueError(f"{table.num_rows} rows where an index says {counts.sum()}")
        page = np.searchsorted(firsts, rows, "right") - 1
        places = rows - firsts[page] + (np.cumsum(counts) - counts)[page]
        # Of a numpy array pyarrow makes its own by way of pandas, which takes long to import.
        wanted = pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(places)])
        return table.column(0).combine_chunks().take(wanted)

    def _small_file(self, leaf: _Leaf, pages: Sequence[_Page]) -> bytes:
        dictionary = _read_at(self._file, *leaf.dictionary) if leaf.dictionary else b""
        content = [_read_at(self._file, each.position, each.length) for each in pages]
        row_count = sum(each.until_row - each.from_row for each in pages)
        value_counts = [_value_count(each) for each in content]
        if len(leaf.path) == 1 and sum(value_counts) != row_count:
            raise ValueError(f"{sum(value_counts)} values where an index says {row_count}")
        body = b"".join((dictionary, *content))
        data_at = len(MAGIC) + len(dictionary)
        metadata = ThriftStruct(
            {each: leaf.metadata.fields[each] for each in _KEPT_METADATA}
        ).with_fields(
            f5=sum(value_counts),
            f6=max(len(body), leaf.metadata[6]),
            f7=len(body),
            f9=data_at,
            f11=len(MAGIC) if dictionary else None,
        )
        chunk = ThriftStruct({2: (6, len(MAGIC)), 3: (12, metadata)})
        group = ThriftStruct(
            {1: (9, ThriftList(12, [chunk])), 2: (6, metadata[6]), 3: (6, row_count)}
        )
        footer = self._footer.with_fields(f3=row_count, f5=None, f7=None)
        footer.fields[2] = (9, ThriftList(12, _pruned(self._footer[2].items, leaf.path)))
        footer.fields[4] = (9, ThriftList(12, [group]))
        text = written(footer)
        return b"".join((MAGIC, body, text, _TRAILER.pack(len(text), MAGIC)))


def footer_of(file: RangedFile) -> ThriftStruct:
    """The file's own footer; raises ValueError for bytes that are none."""
    if file.length < _TRAILER.size:
        raise ValueError("no Parquet footer")
    size, magic = _TRAILER.unpack(_read_at(file, file.length - _TRAILER.size, _TRAILER.size))
    if magic != MAGIC or size + _TRAILER.size > file.length:
        raise ValueError("no Parquet footer")
    footer, _ = read_struct(_read_at(file, file.length - _TRAILER.size - size, size))
    return footer


def chunks_of(footer: ThriftStruct, row_group: int, column: str) -> list[ThriftStruct]:
    """The chunks of a top-level column, one of each leaf; raises ValueError where there is none."""
    name = column.encode()
    found = [each for each in footer[4].items[row_group][1].items if each[3][3].items[0] == name]
    if not found:
        raise ValueError(f"no column {column!r}")
    return found


def chunk_place(file: RangedFile, chunk: ThriftStruct) -> tuple[int, int]:
    """Position and length of all pages of a chunk; raises ValueError for a place outside."""
    metadata = chunk[3]
    # Some writers name no dictionary page, and others one where there is none: it is the first.
    start = min(each for each in (metadata.get(11), metadata[9]) if each)
    return _checked(file, (start, metadata[7]))


def extremes_of(chunk: ThriftStruct) -> tuple[int, int] | None:
    """The smallest and the largest of a chunk of integers; None where the footer does not say."""
    statistics = chunk[3].get(12)
    low, high = (statistics.get(6), statistics.get(5)) if statistics else (None, None)
    if low is None or high is None:
        return None
    return _number(low), _number(high)


def _number(plain: bytes) -> int:
    """An integer as statistics and indexes have it."""
    return int.from_bytes(plain, "little", signed=True)


def _checked(file: RangedFile, place: tuple[int, int]) -> tuple[int, int]:
    position, length = place
    if not 0 < position < position + length <= file.length:
        raise ValueError(f"{length} bytes at {position} of a file of {file.length}")
    return position, length


def _column_index(chunk: ThriftStruct) -> tuple[int, int] | None:
    return (chunk[6], chunk[7]) if chunk.get(6) and chunk.get(7) else None


def _leaf(file: RangedFile, chunk: ThriftStruct, row_count: int) -> _Leaf:
    index, _ = read_struct(_read_at(file, chunk[4], chunk[5]))
    places = [(each[1], each[2], each[3]) for each in index[1].items]
    firsts = [row for _, _, row in places]
    if len(chunk[3][3].items) == 1 and chunk[3][5] != row_count:
        raise ValueError(f"{chunk[3][5]} values in {row_count} rows")
    if firsts != sorted(firsts) or firsts[:1] not in ([0], []) or firsts[-1:] > [row_count]:
        raise ValueError(f"pages that begin at the rows {firsts[:10]}")
    pages = [
        _Page(position, length, row, until)
        for (position, length, row), until in zip(places, [*firsts[1:], row_count], strict=True)
    ]
    start, _ = chunk_place(file, chunk)
    first = pages[0].position if pages else start
    dictionary = (start, first - start) if start < first else None
    column_index = _column_index(chunk)
    bounds = _read_at(file, *column_index) if column_index else None
    return _Leaf(tuple(chunk[3][3].items), chunk[3], pages, dictionary, bounds)


def _value_count(page: bytes) -> int:
    """How many values a data page says that it holds; in version 1 or 2 of its header."""
    header, _ = read_struct(page)
    return int((header.get(5) or header[8])[1])


def _pruned(schema: Sequence[ThriftStruct], path: Sequence[bytes]) -> list[ThriftStruct]:
    """The schema with one leaf alone: the root, and what leads to the leaf."""
    kept: list[ThriftStruct] = []

    def walk(place: int, depth: int, is_kept: bool) -> int:
        element = schema[place]
        children = element.get(5) or 0
        if is_kept:
            kept.append(element.with_fields(f5=1) if children else element)
        place += 1
        for _ in range(children):
            name = schema[place][4]
            place = walk(place, depth + 1, is_kept and depth < len(path) and name == path[depth])
        return place

    walk(0, 0, True)
    return kept


def _read_at(file: Any, position: int, length: int) -> bytes:
    file.seek(position)
    content: bytes = file.read(length)
    return content
