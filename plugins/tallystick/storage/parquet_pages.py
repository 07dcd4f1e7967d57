"""A few rows of a large row group, without reading the rest: only the pages that hold them.

Parquet's offset index says where each page of a column begins, and with which row; its column
index, which values a page may hold. pyarrow uses neither. So the pages are cut out of the file and
put behind one another as a small Parquet file of one column, with a footer of its own, which
pyarrow reads as any other one, checksums included.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tallystick.storage.compact_thrift import ThriftList, ThriftStruct, read_struct, written
from tallystick.storage.ranged_file import RangedFile

MAGIC: Final = b"PAR1"
_TRAILER: Final = struct.Struct("<I4s")


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
    bounds: tuple[int, int] | None
    """Position and length of the column index; None without one."""

    def holding(self, runs: Sequence[tuple[int, int]]) -> list[_Page]:
        """The pages with a row of one of these runs [from, until), in their order."""
        return [
            page
            for page in self.pages
            if any(page.from_row < until and start < page.until_row for start, until in runs)
        ]

    def pieces(self, runs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """What must be fetched for these rows, as position and length."""
        if self.dictionary:
            yield self.dictionary
        for page in self.holding(runs):
            yield page.position, page.length


class PagedRowGroup:
    """One row group, read by pages. `of` gives None where the file has no offset index."""

    def __init__(self, file: RangedFile, footer: ThriftStruct, leaves: Sequence[_Leaf]) -> None:
        self._file, self._footer, self._leaves = file, footer, leaves

    @classmethod
    def of(
        cls, file: RangedFile, footer: ThriftStruct, row_group: int, columns: Sequence[str]
    ) -> PagedRowGroup | None:
        """These top-level columns of a row group; None where a page can't be found by its row.

        Raises ValueError for bytes that are no index.
        """
        group = footer[4].items[row_group]
        wanted = [name.encode() for name in columns]
        chunks = [each for each in group[1].items if each[3][3].items[0] in wanted]
        if not chunks or any(each.get(4) is None or each.get(5) is None for each in chunks):
            return None
        file.load((each[4], each[5]) for each in chunks)
        leaves = [_leaf(file, each, group[3]) for each in chunks]
        return None if any(not each.pages for each in leaves) else cls(file, footer, leaves)

    def rows(self, runs: Sequence[tuple[int, int]]) -> Mapping[str, pa.Array]:
        """All rows of the runs [from, until), by the path of each leaf with dots.

        Runs are sorted and lie apart. Raises ValueError, OSError or pa.ArrowException for damaged
        pages.
        """
        self._file.load(piece for leaf in self._leaves for piece in leaf.pieces(runs))
        return {b".".join(leaf.path).decode(): self._read(leaf, runs) for leaf in self._leaves}

    def rows_meeting(self, bounds: Sequence[tuple[int, int]]) -> Sequence[tuple[int, int]] | None:
        """The rows [from, until), as runs, of the pages that may hold one of these [first, until).

        None where the file does not say what its pages hold. For one column of whole numbers.
        """
        [leaf] = self._leaves
        if leaf.bounds is None:
            return None
        self._file.load([leaf.bounds])
        index, _ = read_struct(_read_at(self._file, *leaf.bounds))
        runs: list[tuple[int, int]] = []
        # A page of nulls alone has no smallest value: its bounds are empty.
        for page, low, high in zip(leaf.pages, index[2].items, index[3].items, strict=True):
            least, most = (int.from_bytes(each, "little", signed=True) for each in (low, high))
            if not any(least < until and first <= most for first, until in bounds):
                continue
            if runs and runs[-1][1] == page.from_row:
                runs[-1] = (runs[-1][0], page.until_row)
            else:
                runs.append((page.from_row, page.until_row))
        return runs

    def _read(self, leaf: _Leaf, runs: Sequence[tuple[int, int]]) -> pa.Array:
        pages = leaf.holding(runs)
        dictionary = _read_at(self._file, *leaf.dictionary) if leaf.dictionary else b""
        content = [_read_at(self._file, each.position, each.length) for each in pages]
        small = self._small_file(leaf, pages, dictionary, content)
        table = pq.ParquetFile(io.BytesIO(small), page_checksum_verification=True).read(
            use_threads=False
        )
        column = table.column(0).combine_chunks()
        return pa.concat_arrays([column.slice(*each) for each in _places(pages, runs)])

    def _small_file(
        self, leaf: _Leaf, pages: Sequence[_Page], dictionary: bytes, content: Sequence[bytes]
    ) -> bytes:
        body = b"".join((dictionary, *content))
        data_at = len(MAGIC) + len(dictionary)
        row_count = sum(each.until_row - each.from_row for each in pages)
        metadata = leaf.metadata.with_fields(
            f5=sum(_value_count(each) for each in content),
            f6=max(len(body), leaf.metadata[6]),
            f7=len(body),
            f8=None,
            f9=data_at,
            f10=None,
            f11=len(MAGIC) if dictionary else None,
            f12=None,
            f13=None,
            f14=None,
            f15=None,
            f16=None,
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


def _places(pages: Sequence[_Page], runs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Where the rows of the runs are among the rows of these pages: first one, and how many."""
    for start, until in runs:
        before = 0
        for page in pages:
            first, last = max(start, page.from_row), min(until, page.until_row)
            if first < last:
                yield before + first - page.from_row, last - first
            before += page.until_row - page.from_row


def footer_of(file: RangedFile, length: int) -> ThriftStruct:
    """The file's own footer; raises ValueError for bytes that are none."""
    size, magic = _TRAILER.unpack(_read_at(file, length - _TRAILER.size, _TRAILER.size))
    if magic != MAGIC or size + _TRAILER.size > length:
        raise ValueError("no Parquet footer")
    footer, _ = read_struct(_read_at(file, length - _TRAILER.size - size, size))
    return footer


def _leaf(file: RangedFile, chunk: ThriftStruct, row_count: int) -> _Leaf:
    index, _ = read_struct(_read_at(file, chunk[4], chunk[5]))
    places = [(each[1], each[2], each[3]) for each in index[1].items]
    untils = [*(row for _, _, row in places[1:]), row_count]
    pages = [
        _Page(position, length, row, until)
        for (position, length, row), until in zip(places, untils, strict=True)
    ]
    metadata = chunk[3]
    start = metadata.get(11)
    first = pages[0].position if pages else 0
    dictionary = (start, first - start) if start and start < first else None
    bounds = (chunk[6], chunk[7]) if chunk.get(6) and chunk.get(7) else None
    return _Leaf(tuple(metadata[3].items), metadata, pages, dictionary, bounds)


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
