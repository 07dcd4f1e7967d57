"""HDFS's checksums from a file's bytes; the contract suite compares them with a real HDFS's own."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import md5
from zlib import crc32

import pytest

from tallystick.storage.any_store import checksum_like

CONTENT = bytes(number * 7 % 251 for number in range(5_000))


def told(kind: str, digest: str = "") -> str:
    return f"{kind}:{'0' * 24}{digest or 'f' * 32}{'0' * 8}"


def fetch(position: int, length: int) -> bytes:
    return CONTENT[position : position + length]


def crcs(size: int) -> Iterator[bytes]:
    for at in range(0, len(CONTENT), size):
        yield crc32(CONTENT[at : at + size]).to_bytes(4, "big")


def of_blocks(*blocks: bytes) -> str:
    digests = b"".join(md5(each).digest() for each in blocks)
    return md5(digests.ljust(max(32, 1 << (len(digests) - 1).bit_length()), b"\0")).hexdigest()


def test_a_file_of_one_block() -> None:
    kind = "MD5-of-0MD5-of-512CRC32"
    expected = told(kind, of_blocks(b"".join(crcs(512))))
    assert checksum_like(fetch, len(CONTENT), told(kind)) == expected


def test_a_file_of_several_blocks_the_last_one_short() -> None:
    kind = "MD5-of-3MD5-of-512CRC32"
    parts = list(crcs(512))
    blocks = [b"".join(parts[at : at + 3]) for at in range(0, len(parts), 3)]
    assert len(blocks) == 4
    assert checksum_like(fetch, len(CONTENT), told(kind)) == told(kind, of_blocks(*blocks))


def test_the_polynomial_is_the_one_of_the_kind() -> None:
    """`123456789` has the CRC-32C e3069283, as its definition says."""
    kind = "MD5-of-0MD5-of-9CRC32C"
    expected = told(kind, of_blocks(bytes.fromhex("e3069283")))
    assert checksum_like(lambda *_: b"123456789", 9, told(kind)) == expected


@pytest.mark.parametrize(
    "kind",
    [
        "COMPOSITE-CRC32C",
        "sha256",
        "MD5-of-0MD5-of-512NULL",
        "RS-6-3-1024k/MD5-of-0MD5-of-512CRC32C",
    ],
)
def test_another_kind_is_not_made(kind: str) -> None:
    assert checksum_like(fetch, len(CONTENT), told(kind)) is None
