"""A record batch's payload, decompressed: Kafka's four codecs, by pyarrow.

https://kafka.apache.org/documentation/#recordbatch names the codecs; nothing here reads records.
Some kilobytes may unpack to gigabytes: what comes out is read piece by piece, or bounded.
"""

from __future__ import annotations

from io import BytesIO
from typing import BinaryIO, Final

import pyarrow

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
MOST_BYTES: Final = 128 << 20
"""What is unpacked as a whole holds no more: snappy, and batches of the old format."""
_FRAMED: Final = {GZIP: "gzip", LZ4: "lz4", ZSTD: "zstd"}
# Java's client writes snappy in the framing of org.xerial.snappy, librdkafka writes one bare block.
_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16
# A snappy copy of 64 bytes takes 3: a block that claims more is damaged, and no memory is taken.
_SNAPPY_MOST: Final = 64


class CodecUnknown(ValueError):
    """The batch is compressed in a way that this code doesn't know."""


class TooLarge(ValueError):
    """It unpacks to more than may be held as a whole."""


def opened(codec: int, payload: memoryview) -> BinaryIO:
    """The plain bytes, to be read; raises CodecUnknown.

    This and its reads raise OSError or ValueError where the payload is damaged.
    """
    plain: BinaryIO
    if codec == NONE:
        plain = pyarrow.BufferReader(payload)
    elif codec == SNAPPY:
        plain = BytesIO(_snappy(payload))
    elif codec in _FRAMED:
        plain = pyarrow.CompressedInputStream(pyarrow.BufferReader(payload), _FRAMED[codec])
    else:
        raise CodecUnknown(f"compression codec {codec}")
    return plain


def decompressed(codec: int, payload: memoryview) -> memoryview:
    """All plain bytes; raises CodecUnknown, or ValueError for a damaged payload or too many."""
    try:
        plain = opened(codec, payload).read(MOST_BYTES + 1)
    except OSError as failure:
        raise ValueError(f"payload of codec {codec} is damaged: {failure}") from failure
    _require_bounded(len(plain))
    return memoryview(plain)


def _snappy(payload: memoryview) -> bytes:
    if bytes(payload[: len(_XERIAL)]) != _XERIAL:
        return _snappy_block(payload)
    plain, position = bytearray(), _XERIAL_HEADER_BYTES
    while position < len(payload):
        start = position + 4
        position = start + int.from_bytes(payload[position:start], "big")
        plain += _snappy_block(payload[start:position])
        _require_bounded(len(plain))
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
    _require_bounded(length)
    return bytes(pyarrow.decompress(block, decompressed_size=length, codec="snappy", asbytes=True))


def _require_bounded(count: int) -> None:
    if count > MOST_BYTES:
        raise TooLarge(f"it unpacks to more than {MOST_BYTES >> 20} MB")
