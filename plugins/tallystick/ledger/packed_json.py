"""JSON texts, and columns of numbers, in a few bytes, and the very same again. Knows no table.

A manifest or a report of many partitions says the same keys thousands of times, with numbers that
follow from their neighbours. So values are kept column by column: each number as its difference to
the row before, or to a column of as many rows that is known already; hexadecimal digits as bytes.

1. `unpacked(packed(text)) == text` for every text: what columns do not give back exactly is kept
   as it is, compressed.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from itertools import accumulate, islice, pairwise
from operator import add, sub
from typing import Any, Final

_AS_IT_IS, _IN_COLUMNS = b"\x00", b"\x01"
_BEFORE: Final = 1
"""The row before is subtracted; a larger number names a known column."""
_MOST_COLUMNS: Final = 32
_ROWS_TRIED: Final = 200
_HEX: Final = re.compile("(?:[0-9a-f]{2})+")


class _Kind(IntEnum):
    NULL = 0
    TRUE = 1
    FALSE = 2
    INT = 3
    FLOAT = 4
    TEXT = 5
    LIST = 6
    OBJECT = 7


def packed(text: str) -> bytes:
    """The text in few bytes."""
    plain = _AS_IT_IS + zlib.compress(text.encode(), 9)
    try:
        columns = _IN_COLUMNS + _in_columns(text)
        is_same = unpacked(columns) == text
    except (ValueError, struct.error, RecursionError):
        return plain
    return columns if is_same and len(columns) < len(plain) else plain


def unpacked(data: bytes) -> str:
    """The text again; ValueError for bytes that no text was packed into."""
    with _damage():
        if data[:1] == _AS_IT_IS:
            return zlib.decompress(data[1:]).decode()
        end, value = _from_columns(data)
        return json.dumps(value, separators=(",", ":")) + end


def unpacked_value(data: bytes) -> Any:
    """What the text says, as `json.loads` gives it, in half the time; ValueError as above."""
    with _damage():
        if data[:1] == _AS_IT_IS:
            return json.loads(zlib.decompress(data[1:]))
        return _from_columns(data)[1]


@contextmanager
def _damage() -> Iterator[None]:
    try:
        yield
    except (zlib.error, struct.error, LookupError, TypeError) as error:
        raise ValueError(f"damaged: {error!r}") from error


def _from_columns(data: bytes) -> tuple[str, Any]:
    """What ends the text, and its value."""
    if data[:1] != _IN_COLUMNS:
        raise ValueError(f"packed in an unknown way: {data[:1]!r}")
    source = _Source(data[1:])
    return "\n" * source.small(), source.values(1)[0]


def packed_columns(columns: Sequence[Sequence[int]]) -> bytes:
    """Columns of whole numbers below 2**63, in few bytes."""
    sink = _Sink()
    for each in columns:
        sink.small(len(each))
        if each:
            sink.numbers(each)
    return b"".join(sink.parts)


def unpacked_columns(data: bytes) -> list[list[int]]:
    """The columns again; ValueError for other bytes."""
    source = _Source(data)
    try:
        found = []
        while not source.is_over:
            count = source.small()
            found.append(source.numbers(count) if count else [])
    except (zlib.error, struct.error, LookupError) as error:
        raise ValueError(f"damaged: {error!r}") from error
    return found


def _in_columns(text: str) -> bytes:
    sink = _Sink()
    sink.small(text.endswith("\n"))
    sink.values([json.loads(text)])
    return b"".join(sink.parts)


def _kind_of(value: Any) -> _Kind:
    if value is None:
        return _Kind.NULL
    if isinstance(value, bool):
        return _Kind.TRUE if value else _Kind.FALSE
    for kind, type_ in _TYPES:
        if isinstance(value, type_):
            return kind
    raise TypeError(f"no JSON: {type(value)}")


_TYPES: Final = (
    (_Kind.INT, int),
    (_Kind.TEXT, str),
    (_Kind.OBJECT, dict),
    (_Kind.LIST, list),
    (_Kind.FLOAT, float),
)


def _are_columns(lengths: Sequence[int]) -> bool:
    """True for lists that are rows of one table: pairs, as a rule."""
    return 0 < lengths[0] < len(lengths) and len(set(lengths)) == 1


class _Columns:
    """The columns of numbers that both sides know by now."""

    def __init__(self) -> None:
        self._known: defaultdict[int, list[Sequence[int]]] = defaultdict(list)

    def of_length(self, rows: int) -> list[Sequence[int]]:
        return self._known[rows]

    def know(self, *columns: Sequence[int]) -> None:
        known = self._known[len(columns[0])]
        known += columns[: max(0, _MOST_COLUMNS - len(known))]


class _Sink:
    """Columns into bytes."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._columns = _Columns()

    def small(self, number: int) -> None:
        """Seven bits a byte, the lowest first."""
        while number > 127:
            self.parts.append(bytes([number & 127 | 128]))
            number >>= 7
        self.parts.append(bytes([number]))

    def block(self, content: bytes) -> None:
        """Compressed where that helps."""
        smaller = zlib.compress(content, 9)
        is_smaller = len(smaller) < len(content)
        kept = smaller if is_smaller else content
        self.small(len(kept) << 1 | is_smaller)
        self.parts.append(kept)

    def values(self, values: Sequence[Any]) -> None:
        """Values of any kind: their kinds, then those of each kind."""
        kinds = bytes(map(_kind_of, values))
        self.block(kinds)
        for kind in sorted(set(kinds)):
            some = [each for each, its in zip(values, kinds, strict=True) if its == kind]
            match _Kind(kind):
                case _Kind.INT:
                    self.numbers(some)
                case _Kind.FLOAT:
                    self.texts([json.dumps(each) for each in some])
                case _Kind.TEXT:
                    self.texts(some)
                case _Kind.LIST:
                    self._lists(some)
                case _Kind.OBJECT:
                    self._objects(some)
                case _Kind.NULL | _Kind.TRUE | _Kind.FALSE:
                    pass  # the kind says it all

    def numbers(self, column: Sequence[int]) -> None:
        """How they differ from what is like them, byte by byte of all rows."""
        base, rest = self._nearest(column)
        self.small(base)
        folded = [(each << 1) ^ (each >> 63) for each in rest]
        rows = struct.pack(f"<{len(folded)}Q", *folded)
        width = (max(folded).bit_length() + 7) // 8
        self.small(width)
        for place in range(width):
            self.block(rows[place::8])
        self._columns.know(column, rest)

    def _nearest(self, column: Sequence[int]) -> tuple[int, list[int]]:
        """What to subtract, by its number, and what is left."""
        bases: list[Sequence[int]] = [(0, *column[:-1]), *self._columns.of_length(len(column))]
        tried = column[:_ROWS_TRIED]
        sizes = [
            sum(each.bit_length() for each in map(sub, tried, base))  # map stops with the shorter
            for base in bases
        ]
        best = sizes.index(min(sizes))
        return best + _BEFORE, list(map(sub, column, bases[best]))

    def texts(self, column: Sequence[str]) -> None:
        """As bytes where all are hexadecimal digits, equally many of them."""
        together = "".join(column)
        digits = len(column[0])
        if (
            {len(each) for each in column} == {digits}
            and digits % 2 == 0
            and _HEX.fullmatch(together)
        ):
            self.small(digits // 2)
            self.block(bytes.fromhex(together))
            return
        self.small(0)
        self.numbers([len(each) for each in column])
        self.block(together.encode())

    def _lists(self, column: Sequence[list[Any]]) -> None:
        lengths = [len(each) for each in column]
        self.numbers(lengths)
        if _are_columns(lengths):
            for place in range(lengths[0]):
                self.values([each[place] for each in column])
        else:
            self.values([one for each in column for one in each])

    def _objects(self, column: Sequence[dict[str, Any]]) -> None:
        shapes: dict[tuple[str, ...], list[dict[str, Any]]] = {}
        places = []
        for each in column:
            shape = tuple(each)
            shapes.setdefault(shape, []).append(each)
            places.append(shape)
        numbers = {shape: number for number, shape in enumerate(shapes)}
        self.texts([json.dumps(list(shapes))])
        self.numbers([numbers[each] for each in places])
        for shape, some in shapes.items():
            for key in shape:
                self.values([each[key] for each in some])


class _Source:
    """Bytes into the columns that a `_Sink` has put there; each method mirrors its namesake."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._columns = _Columns()

    @property
    def is_over(self) -> bool:
        return self._at >= len(self._data)

    def small(self) -> int:
        number = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    def block(self) -> bytes:
        length = self.small()
        kept = self._data[self._at : self._at + (length >> 1)]
        self._at += length >> 1
        return zlib.decompress(kept) if length & 1 else kept

    def values(self, count: int) -> list[Any]:
        kinds = self.block()
        if len(kinds) != count:
            raise ValueError(f"damaged: {len(kinds)} values, not {count}")
        found: dict[int, Iterator[Any]] = {}
        for kind in sorted(set(kinds)):
            found[kind] = iter(self._of_kind(_Kind(kind), kinds.count(kind)))
        return [next(found[kind]) for kind in kinds]

    def _of_kind(self, kind: _Kind, count: int) -> Sequence[Any]:
        match kind:
            case _Kind.NULL:
                return [None] * count
            case _Kind.TRUE | _Kind.FALSE:
                return [kind is _Kind.TRUE] * count
            case _Kind.INT:
                return self.numbers(count)
            case _Kind.FLOAT:
                return [json.loads(each) for each in self.texts(count)]
            case _Kind.TEXT:
                return self.texts(count)
            case _Kind.LIST:
                return self._lists(count)
            case _Kind.OBJECT:
                return self._objects(count)

    def numbers(self, count: int) -> list[int]:
        base = self.small() - _BEFORE
        rows = bytearray(8 * count)
        for place in range(self.small()):
            rows[place::8] = self.block()
        folded = struct.unpack(f"<{count}Q", rows)
        rest = [(each >> 1) ^ -(each & 1) for each in folded]
        column = (
            list(map(add, rest, self._columns.of_length(count)[base - 1]))
            if base
            else list(accumulate(rest))
        )
        self._columns.know(column, rest)
        return column

    def texts(self, count: int) -> list[str]:
        size = self.small()
        if size:
            digits = self.block().hex()
            return [digits[at : at + 2 * size] for at in range(0, 2 * size * count, 2 * size)]
        ends = list(accumulate(self.numbers(count), initial=0))
        together = self.block().decode()
        return [together[begin:end] for begin, end in pairwise(ends)]

    def _lists(self, count: int) -> list[list[Any]]:
        lengths = self.numbers(count)
        if _are_columns(lengths):
            columns = [self.values(count) for _ in range(lengths[0])]
            return [list(each) for each in zip(*columns, strict=True)]
        together = iter(self.values(sum(lengths)))
        return [list(islice(together, each)) for each in lengths]

    def _objects(self, count: int) -> list[dict[str, Any]]:
        shapes = json.loads(self.texts(1)[0])
        places = self.numbers(count)
        rows = [
            zip(*(self.values(places.count(number)) for _ in shape), strict=True)
            if shape
            else iter([()] * places.count(number))
            for number, shape in enumerate(shapes)
        ]
        return [dict(zip(shapes[each], next(rows[each]), strict=True)) for each in places]
