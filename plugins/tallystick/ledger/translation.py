"""psycopg's errors as ours: one table, tried from top to bottom."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import psycopg
from psycopg import errors

from tallystick.errors import (
    ClaimConflict,
    LedgerAccessRefused,
    LedgerError,
    LedgerRefused,
    LedgerRightMissing,
    LedgerUnavailable,
)

# The server can't serve now, or chose this transaction as the victim: the same again may succeed.
_PASSING: Final = (
    psycopg.OperationalError,  # connection lost, shut down, deadlock, time-outs, out of resources
    psycopg.InterfaceError,
    errors.ReadOnlySqlTransaction,  # a standby, after or before its promotion
    errors.ProtocolViolation,  # a pooler whose server is away, or that has none to give just now
)
_STATEMENT_POOLING: Final = "statement pooling"
# What no try mends: certificates, keys, passwords, names and the server's rules of access. The
# client library gives no code for them. A peer that goes away in the middle is no such thing.
_LASTING: Final = re.compile(
    r"SSL error: (?!unexpected eof)|certificate|private key|sslmode|SSL support|support SSL"
    r"|pg_hba\.conf|authentication failed|no password supplied|channel binding"
    r"|authentication method requirement|not permitted to log in|startup parameter"
    r"|permission denied for database"
    r"|(role|database) \".*\" does not exist|no such (database|user)"
)
# Names of hosts, files, roles and databases, which may hold any of these words.
_NAMES: Final = re.compile(r"\"[^\"]*\"|^'[^']*'(, (port|hostaddr): '[^']*')*: ")
# psycopg tells of several hosts in one text, each behind this.
_EACH_HOST: Final = "\n- host: "
_CONFLICT: Final = re.compile(
    r"=\((\d+), \[(\d+),(\d+)\)\).*=\((\d+), \[(\d+),(\d+)\)\)", re.DOTALL
)
_LONGEST_TEXT: Final = 600
_POOLER_HELP: Final = (
    "A pooler between here and the server must pool sessions or transactions, not statements"
)


def translated(
    error: psycopg.Error, statement: str, feed: str, partitions: Mapping[int, str]
) -> LedgerError:
    """What the error means for the story; raise it `from` the original.

    `partitions` names generations for people, as `topic-partition`.
    """
    if isinstance(error, errors.ExclusionViolation):
        return ClaimConflict(feed, _overlap(error, partitions))
    if isinstance(error, errors.ProtocolViolation) and _STATEMENT_POOLING in str(error):
        return LedgerRefused(statement, f"{reason_of(error)}. {_POOLER_HELP}")
    # How a standby refuses to begin what may write.
    is_standby = statement == "begin_write" and isinstance(error, errors.FeatureNotSupported)
    if is_standby or isinstance(error, _PASSING):
        return LedgerUnavailable(reason_of(error))
    if isinstance(error, errors.InsufficientPrivilege):
        return LedgerRightMissing(statement, reason_of(error))
    return LedgerRefused(statement, reason_of(error))


def not_connected(said: str) -> LedgerError:
    """What it means that no session could be opened; `said` is the client library's text.

    A refusal only if each host's answer is one: the others may be back in a moment.
    """
    _, *each_host = said.split(_EACH_HOST)
    facts = [facts_in(each) for each in each_host or [said]]
    is_lasting = all(_LASTING.search(_NAMES.sub('""', each)) for each in facts)
    kind = LedgerAccessRefused if is_lasting else LedgerUnavailable
    return kind("; ".join(each.rstrip(".") for each in facts))


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
