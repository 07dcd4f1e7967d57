"""The row hash of `domain.rows.row_hash` as Spark computes it; a test compares the two."""

from __future__ import annotations

from typing import Final

from tallystick.domain.rows.row_hash import (
    HEADER_COUNT_AT,
    KEY_IS_NULL,
    NO_HEADERS,
    NULL_SIGNS,
    PARTITION_AT,
    SEPARATOR,
    TIMESTAMP_TYPE_AT,
    VALUE_IS_NULL,
)

# No landing writes null for these; a file that was written anew may have it. What is null is left
# out of a hash, with all that shares its word.
_TIMESTAMP: Final = "ifnull(timestamp, -1L)"
_TIMESTAMP_TYPE: Final = "ifnull(timestamp_type, -2)"
_SMALL: Final = (
    f"shiftleft(cast(partition AS BIGINT), {PARTITION_AT})"
    f" ^ shiftleft(cast(if(headers IS NULL, {NO_HEADERS}, size(headers)) AS BIGINT),"
    f" {HEADER_COUNT_AT})"
    f" ^ shiftleft(cast({_TIMESTAMP_TYPE} AS BIGINT), {TIMESTAMP_TYPE_AT})"
    f" ^ if(key IS NULL, {KEY_IS_NULL}L, 0L) ^ if(value IS NULL, {VALUE_IS_NULL}L, 0L)"
)
_CHECKSUMS: Final = "shiftleft(ifnull(crc32(key), 0L), 32) ^ ifnull(crc32(value), 0L)"
# A lambda would tell each null simply, and cost half as much again: Spark compiles none.
_JOINED_HEADERS: Final = tuple(
    f"array_join(cast(headers.value AS ARRAY<STRING>), chr({SEPARATOR}), chr({sign}))"
    for sign in NULL_SIGNS
)
PLACE: Final = f"xxhash64(xxhash64(offset) ^ {_TIMESTAMP}, {_SMALL}) AS place"
"""Column `place`, which both halves are made of: to be selected before them."""
HALVES: Final = (
    f"xxhash64(place, key, value, headers, {', '.join(_JOINED_HEADERS)}) AS high_half",
    f"xxhash64(~place ^ {_CHECKSUMS}, crc32(cast({_JOINED_HEADERS[0]} AS BINARY))) AS low_half",
)
"""Columns `high_half` and `low_half`, as signed numbers of 64 bits."""
