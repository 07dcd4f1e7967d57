"""A record batch's payload, decompressed: Kafka's four codecs, by pyarrow and the standard library.

https://kafka.apache.org/documentation/#recordbatch names the codecs; nothing here reads records.
"""

from __future__ import annotations

import zlib
from typing import Final

import pyarrow

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
_FRAMED: Final = {LZ4: "lz4", ZSTD: "zstd"}
# Java's client writes snappy in the framing of org.xerial.snappy, librdkafka writes one bare block.
_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16
# A snappy copy of 64 bytes takes 3: a block that claims more is damaged, and no memory is taken.
_SNAPPY_MOST: Final = 64


class CodecUnknown(ValueError):
    """The batch is compressed in a way that this code doesn't know."""


def decompressed(codec: int, payload: memoryview) -> memoryview:
    """The plain bytes; raises CodecUnknown, or ValueError where the payload is damaged."""
    if codec == NONE:
        return payload
    try:
        return memoryview(_decompressed(codec, payload))
    except (OSError, zlib.error, EOFError) as failure:
        raise ValueError(f"payload of codec {codec} is damaged: {failure}") from failure


def _decompressed(codec: int, payload: memoryview) -> bytes:
    if codec == GZIP:
        return zlib.decompress(payload, wbits=zlib.MAX_WBITS | 16)
    if codec == SNAPPY:
        return _snappy(payload)
    if codec in _FRAMED:
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(payload), _FRAMED[codec]) as stream:
            return bytes(stream.read())
    raise CodecUnknown(f"compression codec {codec}")


def _snappy(payload: memoryview) -> bytes:
    if bytes(payload[: len(_XERIAL)]) != _XERIAL:
        return _snappy_block(payload)
    plain, position = bytearray(), _XERIAL_HEADER_BYTES
    while position < len(payload):
        start = position + 4
        position = start + int.from_bytes(payload[position:start], "big")
        plain += _snappy_block(payload[start:position])
    return bytes(plain)


def _snappy_block(block: memoryview) -> bytes:
    """One block; its first bytes are a varint with the plain length."""
    length = shift = 0
    for byte in block[:5]:
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if length > _SNAPPY_MOST * max(1, len(block)):
        raise ValueError(f"snappy block of {len(block)} bytes claims {length} plain ones")
    return bytes(pyarrow.decompress(block, decompressed_size=length, codec="snappy", asbytes=True))
