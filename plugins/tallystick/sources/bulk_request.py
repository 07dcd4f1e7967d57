"""Requests about many partitions, which kafka-python sends and we encode and decode.

The library makes an object of each partition asked and answered: 100,000 of them take seconds.
Here they are columns, packed and unpacked by `struct`. Decides nothing about answers. The layouts
are the protocol's, https://kafka.apache.org/protocol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import starmap
from struct import Struct
from typing import Any, ClassVar, Final

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
NO_TAGS: Final = b"\0"
NO_REPLICA: Final = -1
_MORE: Final = 0x80


class Reader:
    """The fields of an answer, one after the other; ValueError where it ends too early.

    Lengths are compact in the versions that have tags.
    """

    def __init__(self, data: bytes, *, is_compact: bool = True) -> None:
        self.data = data
        self.position = 0
        self._is_compact = is_compact

    def fields(self, layout: Struct) -> tuple[Any, ...]:
        """The next fields, of this layout."""
        found = layout.unpack_from(self.data, self._passed(layout.size))
        return found

    def bytes(self, size: int) -> bytes:
        """The next so many bytes."""
        start = self._passed(size)
        return self.data[start : self.position]

    def columns(self, layout: Struct, count: int) -> list[Sequence[Any]]:
        """The next rows of this layout, each with its tags behind it: a column for each field."""
        bare = Struct(f"{layout.format}B")
        start = self._passed(bare.size * count)
        view = memoryview(self.data)[start : self.position]
        rows = list(bare.iter_unpack(view)) if count else []
        *columns, tags = zip(*rows, strict=True) if rows else _no_rows(bare)
        if not any(tags):
            return list(columns)
        self.position, rows = start, []
        for _ in range(count):
            rows.append(self.fields(layout))
            self.skip_tags()
        return list(zip(*rows, strict=True))

    def count(self) -> int:
        """How long the next array, or run of bytes, is; 0 also for one that is null."""
        if self._is_compact:
            return max(0, self.varint() - 1)
        return max(0, int(self.fields(_INT32)[0]))

    def string(self) -> str:
        """The next string; empty also for one that is null."""
        size = self.count() if self._is_compact else max(0, int(self.fields(_INT16)[0]))
        return self.bytes(size).decode()

    def varint(self) -> int:
        """The next unsigned number of variable length."""
        found = shift = 0
        while True:
            byte = self.data[self._passed(1)]
            found |= (byte & ~_MORE) << shift
            if byte < _MORE:
                return found
            shift += 7

    def skip_tags(self) -> None:
        """Pass the next fields with tags: none of them is for us."""
        for _ in range(self.varint()):
            self.varint()
            self._passed(self.varint())

    def end(self) -> None:
        """Pass the tags of the whole answer; ValueError where anything is behind them."""
        if self._is_compact:
            self.skip_tags()
        if left := len(self.data) - self.position:
            raise ValueError(f"{left} bytes are left behind the answer's end")

    def _passed(self, size: int) -> int:
        start = self.position
        self.position += size
        if self.position > len(self.data):
            raise ValueError(f"the answer ends after {len(self.data)} bytes")
        return start


class BulkRequest(ABC):
    """One request to one broker, as kafka-python's connection takes it.

    A subclass has a kind of the library for its key and its answer's header, the versions whose
    layout it knows, and the body and the answer of one version.
    """

    kind: ClassVar[Any]
    """The library's class for this request."""
    answer_kind: ClassVar[Any]
    """And for its answer."""
    first_version: ClassVar[int]
    last_version: ClassVar[int]

    def __init__(self) -> None:
        self.API_KEY = self.kind.API_KEY
        self.API_VERSION: int | None = None  # the connection sets it, to one the broker knows
        self.name = self.kind.name
        self.min_version = self._min_version = self.first_version
        self.max_version = self._max_version = self.last_version
        self.header: _Header | None = None

    @abstractmethod
    def body(self) -> bytes:
        """The request behind its header."""

    @abstractmethod
    def answer(self, data: bytes) -> Any:
        """The answer behind its header; ValueError where it has another layout."""

    @property
    def is_flexible(self) -> bool:
        """True where the version has tags, and arrays with short lengths."""
        return bool(self.kind.flexible_version_q(self.API_VERSION))

    def with_header(self, correlation_id: int, client_id: str) -> None:
        """Make the header, as the connection asks for it."""
        self.header = _Header(self, correlation_id, client_id)

    def encode(self, *, framed: bool, header: bool) -> bytes:
        """The whole request; the connection asks for it with header and length."""
        assert framed
        assert header
        assert self.header is not None
        whole = self.header.encoded() + self.body()
        return _INT32.pack(len(whole)) + whole

    def expect_response(self) -> bool:
        """True: there is no question without an answer."""
        return True


class _Header:
    """What the connection keeps of a request until its answer comes."""

    def __init__(self, request: BulkRequest, correlation_id: int, client_id: str) -> None:
        self.correlation_id = correlation_id
        self.api_key, self.api_version = request.API_KEY, request.API_VERSION
        self._request, self._client_id = request, client_id

    def encoded(self) -> bytes:
        fields = Struct(">hhi").pack(self.api_key, self.api_version, self.correlation_id)
        tags = NO_TAGS if self._request.is_flexible else b""
        return fields + short_string(self._client_id) + tags

    def get_response_class(self) -> _Header:
        return self

    def parse_header(self, data: Any) -> Any:
        return self._request.answer_kind.parse_header(data, version=self.api_version)

    def decode(self, data: Any) -> Any:
        return self._request.answer(data.read())


def _no_rows(layout: Struct) -> list[Sequence[Any]]:
    return [()] * len(layout.unpack(bytes(layout.size)))


def short_string(text: str) -> bytes:
    """A string as versions without tags have it."""
    encoded = text.encode()
    return _INT16.pack(len(encoded)) + encoded


def compact_string(text: str) -> bytes:
    """A string as versions with tags have it."""
    encoded = text.encode()
    return varint(len(encoded) + 1) + encoded


def varint(number: int) -> bytes:
    """The number, seven bits a byte."""
    out = bytearray()
    while number >= _MORE:
        out.append(number & ~_MORE & 0xFF | _MORE)
        number >>= 7
    out.append(number)
    return bytes(out)


def packed(layout: Struct, rows: Iterable[tuple[Any, ...]]) -> bytes:
    """The rows, one behind the other."""
    return b"".join(starmap(layout.pack, rows))
