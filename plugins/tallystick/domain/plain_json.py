"""Frozen dataclasses as JSON and back: `from_plain(T, to_plain(x)) == x`.

Knows the kinds that documents are made of: numbers, texts, instants, enumerations, tuples,
mappings, and dataclasses of these. Drops and invents nothing; what does not fit is a ValueError.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")


def to_plain(value: object) -> Any:
    """The value in dicts, lists, texts and numbers; instants in ISO 8601, in UTC.

    Whatever JSON has no form for becomes its text.

    >>> to_plain({"at": datetime(2026, 11, 1, tzinfo=UTC), "span": (1, None)})
    {'at': '2026-11-01T00:00:00+00:00', 'span': [1, None]}
    """
    match value:
        case None | bool() | int():
            return value
        case StrEnum():
            return value.value
        case str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case Mapping():
            return {str(to_plain(key)): to_plain(each) for key, each in value.items()}
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
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"no {kind.__name__}: {error}") from error


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def _read(kind: Any, plain: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _read_option(inner, plain)
    if origin is tuple:
        return tuple(_read(inner[0], each) for each in plain)
    if origin is not None and issubclass(origin, Mapping):
        return {_read_key(inner[0], key): _read(inner[1], each) for key, each in plain.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        read = {name: _read(hint, plain[name]) for name, hint in hints.items() if name in plain}
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
