"""Every SQL statement by its name, read from the `sql/` folder of this package.

A statement is written as plain SQL with `:parameter` places. Decides nothing, runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

_HEADER: Final = re.compile(
    r"^-- name: (?P<name>[a-z_]+)\n(?P<sentence>(?:-- .*\n)+)", re.MULTILINE
)
# Not after another colon: `::` is a cast.
_PARAMETER: Final = re.compile(r"(?<!:):([a-z_]+)")
_MIGRATION: Final = re.compile(r"(?P<version>\d{4})_(?P<title>[a-z0-9_]+)\.sql")


@dataclass(frozen=True, slots=True)
class Statement:
    """One named statement."""

    name: str
    sentence: str
    """What it does, for a reader."""
    query: bytes
    """As psycopg takes it: `%(parameter)s` places."""
    parameters: frozenset[str]


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step of the schema."""

    version: int
    name: str
    """File name without its suffix."""
    script: bytes


def statement(name: str) -> Statement:
    """The statement of this name; KeyError where there is none."""
    return statements()[name]


@cache
def statements() -> dict[str, Statement]:
    """All statements; ValueError where two share a name."""
    found: dict[str, Statement] = {}
    for each in (one for text in _texts() for one in _parsed(text)):
        if each.name in found:
            raise ValueError(f"two statements are named {each.name!r}")
        found[each.name] = each
    return found


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations in their order: 1, 2, 3 and so on, without a gap; ValueError otherwise."""
    found = sorted(_migrations_in(_folder() / "migrations"), key=lambda each: each.version)
    if [each.version for each in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"migrations are not numbered from 1: {[each.name for each in found]}")
    return tuple(found)


def _folder() -> Traversable:
    return files("tallystick.ledger") / "sql"


def _texts() -> Iterator[str]:
    for entry in sorted(_folder().iterdir(), key=lambda each: each.name):
        if entry.name.endswith(".sql"):
            yield entry.read_text(encoding="utf-8")


def _parsed(text: str) -> Iterator[Statement]:
    headers = list(_HEADER.finditer(text))
    ends = [each.start() for each in headers[1:]] + [len(text)]
    for header, until in zip(headers, ends, strict=True):
        body = text[header.end() : until].strip().removesuffix(";")
        query = _PARAMETER.sub(r"%(\1)s", body.replace("%", "%%"))
        sentence = " ".join(line.removeprefix("-- ") for line in header["sentence"].splitlines())
        yield Statement(
            header["name"], sentence, query.encode(), frozenset(_PARAMETER.findall(body))
        )


def _migrations_in(folder: Traversable) -> Iterator[Migration]:
    for entry in folder.iterdir():
        match = _MIGRATION.fullmatch(entry.name)
        if match:
            name = entry.name.removesuffix(".sql")
            yield Migration(int(match["version"]), name, entry.read_bytes())
