"""The 128-bit hash of one record, the same whoever computes it: broker, landed file, second reader.

1. Every field is written with its length, and null differs from empty: no two records share bytes.
2. The partition and the offset are hashed too, so a swapped record shows.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

VERSION: Final = 1
"""Of the function below: it stands beside each hash on record, and only equals are compared."""

_NULL = struct.pack(">q", -1)


def _field(value: bytes | None) -> bytes:
    return _NULL if value is None else struct.pack(">q", len(value)) + value


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
    digest.update(struct.pack(">qqqq", partition, offset, timestamp_ms, len(headers)))
    digest.update(_field(key))
    digest.update(_field(value))
    for name, content in headers:
        digest.update(_field(name.encode()))
        digest.update(_field(content))
    return digest.digest()
