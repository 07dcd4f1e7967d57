"""Frozen dataclasses as JSON and back: `from_plain(T, to_plain(x)) == x`.

Knows the kinds that documents are made of: numbers, texts, instants, enumerations, tuples,
mappings, sets of offsets, and dataclasses of these. Drops and invents nothing; what does not fit is
a ValueError. Plans are read by Spark's drivers, whose Python has no pydantic.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from tallystick.domain.offsets.runs import OffsetRuns

T = TypeVar("T")
_RUNS = tuple[tuple[int, int], ...]


def to_plain(value: object) -> Any:
    """The value in dicts, lists, texts and numbers; instants in ISO 8601, in UTC.

    Whatever JSON has no form for becomes its text.

    >>> to_plain({"at": datetime(2026, 11, 1, tzinfo=UTC), "span": (1, None)})
    {'at': '2026-11-01T00:00:00+00:00', 'span': [1, None]}
    """
    match value:
        case StrEnum():
            return value.value
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case Mapping():
            return {str(to_plain(key)): to_plain(each) for key, each in value.items()}
        case OffsetRuns():
            return list(value)
        case list() | tuple():
            return [to_plain(each) for each in value]
        case set() | frozenset():
            return sorted((to_plain(each) for each in value), key=str)
        case _ if is_dataclass(value):
            return {name: to_plain(getattr(value, name)) for name in _hints(value.__class__)}
        case _:
            return str(value)


def from_plain(kind: type[T], plain: object) -> T:
    """The value that `to_plain` made this of; raises ValueError where it doesn't fit."""
    try:
        return cast("T", _read(kind, plain))
    except (TypeError, KeyError, AttributeError, OverflowError) as error:
        raise ValueError(f"no {kind.__name__}: {error}") from error


def to_line(version: str, value: object) -> str:
    """The value as JSON on one line, which names the version of its format."""
    return json.dumps({"format": version} | to_plain(value), separators=(",", ":"))


def from_line(kind: type[T], version: str, text: str) -> T:
    """The value that `to_line` made this of; raises ValueError for another version, or no JSON."""
    document = json.loads(text)
    found = document.get("format") if isinstance(document, dict) else None
    if found != version:
        raise ValueError(f"no {kind.__name__}: format {found!r} is not {version!r}")
    return from_plain(kind, document)


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def _read(kind: Any, plain: Any) -> Any:
    kind = getattr(kind, "__supertype__", kind)  # what a NewType is a name for
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _read_option(inner, plain)
    if origin is tuple:
        kinds = inner[:1] * len(plain) if inner[-1] is Ellipsis else inner
        return tuple(_read(kind, each) for kind, each in zip(kinds, plain, strict=True))
    if origin is not None and issubclass(origin, Mapping):
        return {_read_key(inner[0], key): _read(inner[1], each) for key, each in plain.items()}
    if kind is OffsetRuns:
        return OffsetRuns.of(_read(_RUNS, plain))
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        read = {name: _read(hints[name], each) for name, each in plain.items() if name in hints}
        return cast("Any", kind)(**read)
    return _read_value(kind, plain)


def _read_key(kind: Any, key: str) -> Any:
    return int(key) if kind is int else _read(kind, key)


def _read_option(kinds: tuple[Any, ...], plain: Any) -> Any:
    if plain is None:
        return None
    return _read(next(each for each in kinds if each is not NoneType), plain)


def _read_value(kind: Any, plain: Any) -> Any:
    if kind is object or kind is Any:
        return plain
    if kind is datetime:
        return datetime.fromisoformat(plain)
    if issubclass(kind, StrEnum):
        return kind(plain)
    if kind is float and isinstance(plain, int) and not isinstance(plain, bool):
        return float(plain)
    if not isinstance(plain, kind):
        raise TypeError(f"{plain!r} is no {kind.__name__}")
    return plain
