"""psycopg's errors as ours: one table, tried from top to bottom."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import psycopg
from psycopg import errors

from tallystick.errors import ClaimConflict, LedgerError, LedgerRefused, LedgerUnavailable

# The server can't serve now, or chose this transaction as the victim: the same again may succeed.
_PASSING: Final = (
    psycopg.OperationalError,  # connection lost, shut down, deadlock, time-outs, out of resources
    psycopg.InterfaceError,
    errors.ReadOnlySqlTransaction,  # a standby, after or before its promotion
)
_CONFLICT: Final = re.compile(
    r"=\((\d+), \[(\d+),(\d+)\)\).*=\((\d+), \[(\d+),(\d+)\)\)", re.DOTALL
)
_LONGEST_TEXT: Final = 600


def translated(
    error: psycopg.Error, statement: str, feed: str, partitions: Mapping[int, str]
) -> LedgerError:
    """What the error means for the story; raise it `from` the original.

    `partitions` names generations for people, as `topic-partition`.
    """
    if isinstance(error, errors.ExclusionViolation):
        return ClaimConflict(feed, _overlap(error, partitions))
    if isinstance(error, _PASSING):
        return LedgerUnavailable(reason_of(error))
    return LedgerRefused(statement, reason_of(error))


def reason_of(error: psycopg.Error) -> str:
    """The database's words on one line, of bounded length."""
    said = error.diag.message_primary or facts_in(str(error)) or type(error).__name__
    parts = (said, error.diag.message_detail, error.diag.message_hint)
    text = "; ".join(" ".join(part.split()).rstrip(".") for part in parts if part)
    return text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + " ..."


def facts_in(text: str) -> str:
    r"""What libpq says without what it guesses, which it puts on lines of their own behind a tab.

    >>> facts_in("connection refused\n\tIs the server running on that host?")
    'connection refused'
    """
    return " ".join(line.strip() for line in text.splitlines() if not line.startswith("\t"))


def _overlap(error: psycopg.Error, partitions: Mapping[int, str]) -> str:
    match = _CONFLICT.search(error.diag.message_detail or "")
    if not match:
        return reason_of(error)
    generation, wanted_from, wanted_until, _, held_from, held_until = map(int, match.groups())
    place = partitions.get(generation, f"generation {generation}")
    return f"{place} [{wanted_from}, {wanted_until}) overlaps [{held_from}, {held_until})"
