"""HDFS's own checksums, made again from a file's bytes: a file that lies in other blocks, or was
copied with other chunks, has another checksum of the same bytes.

`MD5-of-<n>MD5-of-<c>CRC32C` is an MD5 of MD5s, one for each block, of the CRCs of each `c` bytes. A
block has `n` CRCs; where `n` is 0, all bytes are in one. That of a file that is stored by erasure
coding is of striped blocks, and is not made here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from hashlib import md5
from typing import Final

import numpy as np

_KIND: Final = re.compile(r"MD5-of-(\d+)MD5-of-(\d+)(CRC32C?)")
_POLYNOMIALS: Final = {"CRC32": 0xEDB88320, "CRC32C": 0x82F63B78}
_CRC_BYTES: Final = 4
_PIECE_BYTES: Final = 16 << 20
# Behind the lengths of chunk and block, as the server tells a checksum.
_MD5_AT: Final = slice(24, 56)


def checksum_like(fetch: Callable[[int, int], bytes], length_bytes: int, like: str) -> str | None:
    """The checksum of these bytes in the kind of `like`; None for a kind that is not known here.

    `fetch(position, length)` reads them, piece by piece.
    """
    kind, _, told = like.partition(":")
    match = _KIND.fullmatch(kind)
    if not match:
        return None
    per_block, per_crc = int(match[1]), int(match[2])
    piece = per_crc * max(1, _PIECE_BYTES // per_crc)
    crcs = b"".join(
        _crcs(fetch(at, min(piece, length_bytes - at)), per_crc, match[3])
        for at in range(0, length_bytes, piece)
    )
    return f"{kind}:{told[: _MD5_AT.start]}{_of_blocks(crcs, per_block)}{told[_MD5_AT.stop :]}"


def _of_blocks(crcs: bytes, crcs_in_block: int) -> str:
    size = crcs_in_block * _CRC_BYTES or max(1, len(crcs))
    blocks = b"".join(md5(crcs[at : at + size]).digest() for at in range(0, len(crcs), size))
    # HDFS takes the MD5 of its whole buffer, which grows by doubling.
    room = 32
    while room < len(blocks):
        room *= 2
    return md5(blocks.ljust(room, b"\0")).hexdigest()


def _crcs(content: bytes, per_crc: int, of: str) -> bytes:
    """The CRC of each so many bytes, the last ones may be fewer; all whole ones side by side."""
    whole = len(content) // per_crc
    crc = np.full(whole, 0xFFFFFFFF, np.uint32)
    columns = np.frombuffer(content, np.uint8, whole * per_crc).reshape(whole, per_crc).T
    for column in np.ascontiguousarray(columns):
        crc = _table(of)[(crc ^ column) & 0xFF] ^ (crc >> 8)
    rest = content[whole * per_crc :]
    return (~crc).astype(">u4").tobytes() + (_crcs(rest, len(rest), of) if rest else b"")


@cache
def _table(of: str) -> np.ndarray:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIALS[of]), table >> 1)
    return table
