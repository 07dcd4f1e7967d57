"""Record batches as bytes, for tests of what reads them: any offsets, any flags, any damage."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Literal

import pyarrow

COMMIT, ABORT = "commit", "abort"
NO_PRODUCER = -1
_HEADER = struct.Struct(">qiibIhiqqqhii")
_CODECS = {"none": 0, "gzip": 1, "snappy": 2, "xerial": 2, "lz4": 3, "zstd": 4}
_TYPES = {ABORT: 0, COMMIT: 1}

Header = tuple[str, bytes | None]


def a_batch(
    base_offset: int,
    until_offset: int,
    *,
    offsets: Iterable[int] | None = None,
    producer: int = NO_PRODUCER,
    is_transactional: bool = False,
    codec: str = "none",
    values: Sequence[bytes | None] | None = None,
    key: bytes | None = None,
    headers: Sequence[Header] = (),
    timestamps: Sequence[int] | None = None,
    append_time: int | None = None,
    leader_epoch: int = 0,
    magic: int = 2,
) -> bytes:
    """A batch written with [base_offset, until_offset), of which `offsets` have records."""
    kept = list(range(base_offset, until_offset) if offsets is None else offsets)
    times = list(timestamps or [1_000 + offset for offset in kept])
    first = times[0] if times else 0
    bodies = values if values is not None else [b"v%d" % offset for offset in kept]
    records = [
        _record(offset - base_offset, time - first, key, value, headers)
        for offset, time, value in zip(kept, times, bodies, strict=True)
    ]
    attributes = _CODECS[codec] | (0x10 if is_transactional else 0) | (0x08 if append_time else 0)
    return _batch(
        base_offset,
        until_offset,
        records,
        attributes=attributes,
        producer=producer,
        codec=codec,
        first_timestamp=first,
        max_timestamp=append_time or max(times, default=0),
        leader_epoch=leader_epoch,
        magic=magic,
    )


def a_marker(
    offset: int, producer: int, kind: Literal["commit", "abort"], *, is_cleaned: bool = False
) -> bytes:
    """The control batch that ends a transaction; cleaned, only its header is left."""
    record = _record(0, 0, struct.pack(">hh", 0, _TYPES[kind]), b"\0\0\0\0\0\0", ())
    return _batch(
        offset, offset + 1, [] if is_cleaned else [record], attributes=0x30, producer=producer
    )


def _batch(
    base_offset: int,
    until_offset: int,
    records: Sequence[bytes],
    *,
    attributes: int,
    producer: int,
    codec: str = "none",
    first_timestamp: int = 0,
    max_timestamp: int = 0,
    leader_epoch: int = 0,
    magic: int = 2,
) -> bytes:
    payload = compressed(codec, b"".join(records))
    header = _HEADER.pack(
        base_offset,
        _HEADER.size - 12 + len(payload),
        leader_epoch,
        magic,
        0,
        attributes,
        until_offset - base_offset - 1,
        first_timestamp,
        max_timestamp,
        producer,
        0,
        0,
        len(records),
    )
    return header + payload


def _record(
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[Header],
) -> bytes:
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + _field(key) + _field(value)
    body += varint(len(headers))
    for name, content in headers:
        body += _field(name.encode()) + _field(content)
    return varint(len(body)) + body


def _field(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def varint(number: int) -> bytes:
    """The number in zigzag, seven bits a byte."""
    left = (number << 1) ^ (number >> 63)
    out = bytearray()
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    out.append(left)
    return bytes(out)


def compressed(codec: str, plain: bytes) -> bytes:
    """The bytes as a producer compresses them."""
    if codec == "none":
        return plain
    if codec == "gzip":
        squeezed = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
        return squeezed.compress(plain) + squeezed.flush()
    if codec == "snappy":
        return bytes(pyarrow.compress(plain, codec="snappy", asbytes=True))
    if codec == "xerial":
        halves = (plain[: len(plain) // 2], plain[len(plain) // 2 :])
        blocks = [pyarrow.compress(half, codec="snappy", asbytes=True) for half in halves]
        framed = b"".join(struct.pack(">i", len(block)) + block for block in blocks)
        return b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1) + framed
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, codec) as stream:
        stream.write(plain)
    return bytes(sink.getvalue())
