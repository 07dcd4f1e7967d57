"""The 128-bit hash of a landed row, as Spark computes it in bulk: two halves by two algorithms.

This is the definition; `spark/slice_sums.py` must give the same, and a test compares them. It
finds accidents, not forgers: neither XXH64 nor CRC-32 is a cryptographic hash.

1. A row's place, its times and which of its fields are null are hashed first, to 64 bits that both
   halves begin with. A scrub hashes every row ever landed, so that is done once, and small numbers
   share a word. Neither half tells two places apart whose 64 bits are the same; no two that differ
   in one field are such a pair. The low half begins with all bits turned: an empty row's halves
   would be equal.
2. The high half goes on with XXH64 over all content. Fields are hashed one after another, each as
   seed of the next, so no two rows share their input. The low half goes on with the CRC-32 of key,
   value and header values: what one algorithm is blind to in them, the other sees, and the bytes go
   through XXH64 once only, which is most of a scrub's work.
3. Null is told from empty, and which of two fields is null, by flags: XXH64 alone skips nulls, and
   the CRC-32 of null counts as 0, which is that of nothing.
4. Headers are hashed as key, value, key, value and so on; then their values are, joined with two
   different signs for null: where a null stands, the two texts differ, so its place is known. One
   text would not do, since a value may be the sign itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from zlib import crc32

VERSION: Final = 2
"""Of the functions below: it stands beside each fingerprint on record; only equals are compared."""
KEY_IS_NULL: Final = 1
VALUE_IS_NULL: Final = 2
NO_HEADERS: Final = -1
"""In place of the number of headers, where they are null."""
PARTITION_AT: Final = 32
HEADER_COUNT_AT: Final = 4
TIMESTAMP_TYPE_AT: Final = 2
"""The bits where numbers begin that share a word with the flags."""
SEPARATOR: Final = 0
NULL_SIGNS: Final = (1, 2)

SPARK_SEED: Final = 42
"""What Spark's `xxhash64` begins with."""
_MASK: Final = (1 << 64) - 1
_P1: Final = 0x9E3779B185EBCA87
_P2: Final = 0xC2B2AE3D27D4EB4F
_P3: Final = 0x165667B19E3779F9
_P4: Final = 0x85EBCA77C2B2AE63
_P5: Final = 0x27D4EB2F165667C5


def row_hash(
    *,
    partition: int,
    offset: int,
    timestamp_micros: int,
    timestamp_type: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] | None,
) -> int:
    """128 bits over a row's place and content; order and repeats of headers count."""
    flags = (KEY_IS_NULL if key is None else 0) | (VALUE_IS_NULL if value is None else 0)
    count = NO_HEADERS if headers is None else len(headers)
    joined = [None, None] if headers is None else [_joined(headers, sign) for sign in NULL_SIGNS]
    pairs = [each for pair in headers or () for each in _encoded(*pair)]
    place = _place(partition, offset, timestamp_micros, timestamp_type, flags, count)
    high = hash_long(place, SPARK_SEED)
    checksums = crc32(key or b"") << 32 | crc32(value or b"")
    low = hash_long(~place ^ checksums, SPARK_SEED)
    for content in (key, value, *pairs, *joined):
        high = high if content is None else hash_bytes(content, high)
    low = low if joined[0] is None else hash_long(crc32(joined[0]), low)
    return high << 64 | low


def _place(
    partition: int,
    offset: int,
    timestamp_micros: int,
    timestamp_type: int,
    flags: int,
    header_count: int,
) -> int:
    small = (
        partition << PARTITION_AT
        ^ header_count << HEADER_COUNT_AT
        ^ timestamp_type << TIMESTAMP_TYPE_AT
        ^ flags
    )
    times = hash_long(offset, SPARK_SEED) ^ timestamp_micros
    return hash_long(small, hash_long(times, SPARK_SEED))


def _joined(headers: Sequence[tuple[str, bytes | None]], sign: int) -> bytes:
    values = [bytes([sign]) if each is None else each for _, each in headers]
    return bytes([SEPARATOR]).join(values)


def _encoded(name: str, content: bytes | None) -> tuple[bytes, bytes | None]:
    return name.encode(), content


def wrapped(number: int) -> int:
    """The number modulo 2^64, signed: as a BIGINT of Spark's or PostgreSQL's holds a hash.

    >>> wrapped(2**63), wrapped(2**64 + 5), wrapped(-1)
    (-9223372036854775808, 5, -1)
    """
    half = 1 << 63
    return (number + half & _MASK) - half


def hash_long(number: int, seed: int) -> int:
    """XXH64 of a 64-bit number; of each one, if it is numpy's array of such numbers."""
    mixed = (seed + _P5 + 8) & _MASK
    return _finished(_with_word(mixed, number & _MASK))


def hash_bytes(content: bytes, seed: int = SPARK_SEED) -> int:
    """XXH64 of bytes.

    >>> f"{hash_bytes(b'', 0):016x}"
    'ef46db3751d8e999'
    """
    length, place = len(content), 0
    if length >= 32:
        lanes = [seed + _P1 + _P2, seed + _P2, seed, seed - _P1]
        while place <= length - 32:
            for lane in range(4):
                word = int.from_bytes(content[place : place + 8], "little")
                lanes[lane] = _rotated(lanes[lane] + word * _P2 & _MASK, 31) * _P1 & _MASK
                place += 8
        mixed = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            mixed ^= _rotated(lane * _P2 & _MASK, 31) * _P1 & _MASK
            mixed = mixed * _P1 + _P4 & _MASK
    else:
        mixed = seed + _P5
    return _finished(_with_tail((mixed + length) & _MASK, content[place:]))


def _with_tail(mixed: int, tail: bytes) -> int:
    place = 0
    while place + 8 <= len(tail):
        mixed = _with_word(mixed, int.from_bytes(tail[place : place + 8], "little"))
        place += 8
    if place + 4 <= len(tail):
        mixed ^= int.from_bytes(tail[place : place + 4], "little") * _P1 & _MASK
        mixed = _rotated(mixed, 23) * _P2 + _P3 & _MASK
        place += 4
    for byte in tail[place:]:
        mixed ^= byte * _P5 & _MASK
        mixed = _rotated(mixed, 11) * _P1 & _MASK
    return mixed


def _with_word(mixed: int, word: int) -> int:
    mixed ^= _rotated(word * _P2 & _MASK, 31) * _P1 & _MASK
    return _rotated(mixed, 27) * _P1 + _P4 & _MASK


def _finished(mixed: int) -> int:
    mixed ^= mixed >> 33
    mixed = mixed * _P2 & _MASK
    mixed ^= mixed >> 29
    mixed = mixed * _P3 & _MASK
    return mixed ^ mixed >> 32


def _rotated(word: int, bits: int) -> int:
    word &= _MASK
    return (word << bits | word >> 64 - bits) & _MASK
