"""Texts from elsewhere as PostgreSQL can keep them. Changes nothing that it can keep."""

from __future__ import annotations

import json
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
