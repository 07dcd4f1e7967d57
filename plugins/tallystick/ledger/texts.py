"""Texts as PostgreSQL keeps them: without what it refuses, or compressed. Knows no table.

Of many partitions a text takes a tenth of its bytes, by xz. A manifest says the same keys thousands
of times, and each number several times, a megabyte apart: zlib looks back 32 kilobytes, and leaves
half as much again.
"""

from __future__ import annotations

import json
import lzma
import math
from collections.abc import Mapping
from typing import Final

_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def storable(text: str) -> str:
    r"""The text without what PostgreSQL refuses: NUL and lone surrogates.

    >>> storable("zero \0, half a pair \ud800") == "zero \ufffd, half a pair ?"
    True
    """
    return text.replace("\0", _REPLACEMENT).encode("utf-8", "replace").decode("utf-8")


def evidence_json(evidence: Mapping[str, object]) -> str:
    """The evidence as a JSON object; values that JSON doesn't know become text.

    >>> evidence_json({"offset": 5, "ranges": (1, None), "ratio": float("nan")})
    '{"offset": 5, "ranges": [1, null], "ratio": "nan"}'
    """
    return json.dumps(_known_to_json(evidence))


def _known_to_json(value: object) -> object:
    match value:
        case None | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case Mapping():
            return {storable(str(key)): _known_to_json(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_known_to_json(each) for each in value]
        case _:
            return storable(str(value))


def compressed(text: str) -> bytes:
    """The text in fewer bytes."""
    return lzma.compress(text.encode())


def decompressed(data: bytes) -> str:
    """The text again; ValueError for other bytes."""
    try:
        return lzma.decompress(data).decode()
    except lzma.LZMAError as error:
        raise ValueError(f"damaged: {error}") from error
