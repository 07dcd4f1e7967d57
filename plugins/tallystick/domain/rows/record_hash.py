"""The 128-bit hash of one record, the same whoever computes it: broker, landed file, second reader.

1. Every field is written with its length, and null differs from empty: no two records share bytes.
2. The partition and the offset are hashed too, so a swapped record shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from struct import Struct
from typing import Final

VERSION: Final = 1
"""Of the function below: it stands beside each hash on record, and only equals are compared."""

_HEAD: Final = Struct(">qqqq")
_LENGTH: Final = Struct(">q")
_NULL: Final = _LENGTH.pack(-1)


def _field(value: bytes | None) -> bytes:
    return _NULL if value is None else _LENGTH.pack(len(value)) + value


def record_hash(
    *,
    partition: int,
    offset: int,
    timestamp_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]],
) -> bytes:
    """16 bytes over the record's place and content; header order and repeats count."""
    digest = blake2b(digest_size=16, person=b"tallystick-rec-1")
    digest.update(_HEAD.pack(partition, offset, timestamp_ms, len(headers)))
    digest.update(_field(key))
    digest.update(_field(value))
    for name, content in headers:
        digest.update(_field(name.encode()))
        digest.update(_field(content))
    return digest.digest()
