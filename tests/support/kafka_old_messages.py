"""Messages of versions 0 and 1 as bytes, plain and wrapped: no broker of today writes them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from tallystick.sources.message_sets import with_frame_checksum
from tests.support.kafka_batches import compressed

_CODECS = {"none": 0, "gzip": 1, "snappy": 2, "xerial": 2, "lz4": 3, "zstd": 4}
_APPEND_TIME = 0x08


@dataclass(frozen=True, slots=True)
class OldMessage:
    """One message; version 0 leaves its time out."""

    offset: int
    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int = -1


def a_message(
    message: OldMessage, magic: int, *, codec: str = "none", has_append_time: bool = False
) -> bytes:
    """One entry of a message set, as a broker stores it."""
    attributes = _CODECS[codec] | (_APPEND_TIME if has_append_time else 0)
    body = struct.pack(">bb", magic, attributes)
    if magic == 1:
        body += struct.pack(">q", message.timestamp_ms)
    body += _field(message.key) + _field(message.value)
    checked = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", message.offset, len(checked)) + checked


def a_wrapper(
    messages: Sequence[OldMessage], magic: int, codec: str, *, append_time: int | None = None
) -> bytes:
    """A compressed message set in its wrapper; version 1 counts offsets from the first message."""
    first = messages[0].offset if magic == 1 else 0
    plain = b"".join(
        a_message(OldMessage(each.offset - first, each.value, each.key, each.timestamp_ms), magic)
        for each in messages
    )
    payload = compressed(codec, plain)
    if codec == "lz4" and magic == 0:
        payload = _with_the_old_checksum(payload)
    newest = max(each.timestamp_ms for each in messages)
    outer = OldMessage(
        messages[-1].offset, payload, None, newest if append_time is None else append_time
    )
    return a_message(outer, magic, codec=codec, has_append_time=append_time is not None)


def _with_the_old_checksum(frame: bytes) -> bytes:
    """What clients before 0.10 wrote (KAFKA-3160): any other byte than the right one will do."""
    right = with_frame_checksum(frame)
    assert right == frame, "pyarrow writes the right checksum"
    place = next(at for at in range(6, 19) if with_frame_checksum(_changed(frame, at)) == frame)
    return _changed(frame, place)


def _changed(frame: bytes, place: int) -> bytes:
    return frame[:place] + bytes([frame[place] ^ 0xFF]) + frame[place + 1 :]


def _field(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value
