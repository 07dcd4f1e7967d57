"""The row hash of `domain.rows.row_hash` as Spark computes it; a test compares the two."""

from __future__ import annotations

from typing import Final

from tallystick.domain.rows.row_hash import (
    KEY_IS_NULL,
    NO_HEADERS,
    NULL_SIGNS,
    SEEDS,
    SEPARATOR,
    VALUE_IS_NULL,
)

_FLAGS: Final = f"if(key IS NULL, {KEY_IS_NULL}, 0) | if(value IS NULL, {VALUE_IS_NULL}, 0)"
_HEADER_COUNT: Final = f"if(headers IS NULL, {NO_HEADERS}, size(headers))"
# A lambda would tell each null simply, and cost half as much again: Spark compiles none.
_JOINED_HEADERS: Final = tuple(
    f"array_join(cast(headers.value AS ARRAY<STRING>), chr({SEPARATOR}), chr({sign}))"
    for sign in NULL_SIGNS
)
PLACE: Final = (
    f"xxhash64({SEEDS[0]}L, partition, offset, timestamp, timestamp_type,"
    f" {_FLAGS}, {_HEADER_COUNT}) AS place"
)
"""Column `place`, which both halves are made of: to be selected before them."""
HALVES: Final = (
    f"xxhash64(place, key, value, headers, {', '.join(_JOINED_HEADERS)}) AS high_half",
    f"xxhash64({SEEDS[1]}L, place, crc32(key), crc32(value),"
    f" crc32(cast({_JOINED_HEADERS[0]} AS BINARY))) AS low_half",
)
"""Columns `high_half` and `low_half`, as signed numbers of 64 bits."""
