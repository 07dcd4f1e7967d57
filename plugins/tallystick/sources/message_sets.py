"""Messages of versions 0 and 1, as brokers before 3.0 could still write them.

A topic that is old enough keeps them in its oldest segments, and every broker serves them as they
are. The layout is the protocol's, https://kafka.apache.org/documentation/#messageset. What comes
out is what Java's consumer, and so Spark, makes of them (AbstractLegacyRecordBatch, LegacyRecord):

1. One entry is one message, or the wrapper of a compressed message set. A wrapper bears the offset
   of its last message; inside a wrapper of version 1, offsets count from the first message on.
2. Version 0 knows no time: NO_TIMESTAMP. Under LogAppendTime a wrapper's time is all its messages'.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error
from typing import Final, NamedTuple
from zlib import crc32

from tallystick.sources.batch_codecs import LZ4, NONE, ZSTD, CodecUnknown, decompressed

SHORTEST: Final = {0: 14, 1: 22}
"""Bytes that an entry of each version has at least, of those that its length counts."""
NO_TIMESTAMP: Final = -1
"""What Spark lands too: the millisecond before 1970."""

_ENTRY: Final = Struct(">qi")
_MESSAGE: Final = Struct(">Ibb")
_TIMESTAMP: Final = Struct(">q")
_LENGTH: Final = Struct(">i")
_CODEC_BITS: Final = 0x07
_LOG_APPEND_TIME: Final = 0x08


class StoredRecord(NamedTuple):
    """One record as a consumer would get it; a message has no headers."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class _Entry(NamedTuple):
    """One message as it is stored, wrapper or not."""

    message: StoredRecord
    magic: int
    attributes: int

    @property
    def codec(self) -> int:
        return self.attributes & _CODEC_BITS


def messages_in(entry: memoryview) -> tuple[StoredRecord, ...]:
    """The messages of one whole entry, at least one, by offset; raises ValueError for damage."""
    try:
        [outer] = _entries(entry)
        if outer.codec == NONE:
            return (outer.message,)
        return tuple(_unwrapped(outer))
    except (error, IndexError) as failure:
        raise ValueError(f"its fields reach beyond its end: {failure}") from failure


def _unwrapped(outer: _Entry) -> Iterator[StoredRecord]:
    payload = outer.message.value
    if payload is None or outer.codec == ZSTD:
        raise CodecUnknown(f"a message of version {outer.magic} compressed by codec {outer.codec}")
    if outer.codec == LZ4 and outer.magic == 0:
        payload = with_frame_checksum(payload)
    inner = list(_entries(memoryview(decompressed(outer.codec, memoryview(payload)))))
    if not inner or any(each.codec != NONE for each in inner):
        raise ValueError("a compressed message set holds none, or a compressed one")
    offsets = [each.message.offset for each in inner]
    before = outer.message.offset - offsets[-1] if outer.magic == 1 else 0
    if before + offsets[0] < 0 or offsets != sorted(set(offsets)):
        raise ValueError(f"offsets {offsets[0]} to {offsets[-1]} in one of {outer.message.offset}")
    has_append_time = bool(outer.attributes & _LOG_APPEND_TIME)
    for each in inner:
        source = outer if has_append_time and each.magic == 1 else each
        yield each.message._replace(
            offset=before + each.message.offset, timestamp_ms=source.message.timestamp_ms
        )


def _entries(view: memoryview) -> Iterator[_Entry]:
    """The entries of a message set; raises ValueError where it does not end with its last one."""
    position = 0
    while position < len(view):
        offset, length = _ENTRY.unpack_from(view, position)
        position += _ENTRY.size
        body = view[position : position + length]
        checksum, magic, attributes = _MESSAGE.unpack_from(body)
        if magic not in SHORTEST or not SHORTEST[magic] <= length == len(body):
            raise ValueError(f"a message of version {magic} with {length} bytes")
        if crc32(body[_LENGTH.size :]) != checksum:
            raise ValueError("a message does not have its checksum")
        place, timestamp_ms = _MESSAGE.size, NO_TIMESTAMP
        if magic == 1:
            (timestamp_ms,) = _TIMESTAMP.unpack_from(body, place)
            place += _TIMESTAMP.size
        key, place = _bytes(body, place)
        value, place = _bytes(body, place)
        yield _Entry(StoredRecord(offset, timestamp_ms, key, value), magic, attributes)
        position += length


def _bytes(body: memoryview, place: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(body, place)
    place += _LENGTH.size
    if length < 0:
        return None, place
    if place + length > len(body):
        raise ValueError(f"a field of {length} bytes reaches beyond its message")
    return bytes(body[place : place + length]), place + length


_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_FLAGS_AT: Final = 4
_DICTIONARY_ID: Final = 0x01
_CONTENT_SIZE: Final = 0x08


def with_frame_checksum(frame: bytes) -> bytes:
    """The LZ4 frame with the checksum that its header ought to have.

    Clients before 0.10 hashed four bytes too many (KAFKA-3160), and every LZ4 library refuses that.
    """
    flags = frame[_FLAGS_AT]
    size = 2 + (8 if flags & _CONTENT_SIZE else 0) + (4 if flags & _DICTIONARY_ID else 0)
    until = _FLAGS_AT + size
    checksum = _xxh32(frame[_FLAGS_AT:until]) >> 8 & 0xFF
    return frame[:until] + bytes([checksum]) + frame[until + 1 :]


def _xxh32(text: bytes) -> int:
    """XXH32 of fewer than 16 bytes, seed 0.

    >>> hex(_xxh32(b""))
    '0x2cc5d05'
    """
    mask = 0xFFFFFFFF
    mixed = _P5 + len(text)
    whole = len(text) // 4 * 4
    for place in range(0, whole, 4):
        mixed = mixed + int.from_bytes(text[place : place + 4], "little") * _P3 & mask
        mixed = (mixed << 17 | mixed >> 15) * _P4 & mask
    for byte in text[whole:]:
        mixed = mixed + byte * _P5 & mask
        mixed = (mixed << 11 | mixed >> 21) * _P1 & mask
    mixed = (mixed ^ mixed >> 15) * _P2 & mask
    mixed = (mixed ^ mixed >> 13) * _P3 & mask
    return mixed ^ mixed >> 16
