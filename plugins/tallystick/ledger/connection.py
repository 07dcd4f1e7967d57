"""One connection to the ledger, and transactions on it. Decides no content.

A session keeps nothing but TCP's keepalives from one transaction to the next, so a pooler between
us and the server may give each transaction another one.

Opened when first used, and again when it broke, but never in the middle of a transaction: what a
broken transaction had done is undone by the server. One thread at a time has a transaction; others
wait for it to end.
"""

from __future__ import annotations

import logging
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import NoneType
from typing import Any, Final

import psycopg
from psycopg import errors
from psycopg.abc import Buffer
from psycopg.pq import TransactionStatus
from psycopg.rows import namedtuple_row
from psycopg.types.datetime import TimestamptzLoader

from tallystick.errors import (
    ClaimConflict,
    LedgerAccessRefused,
    LedgerError,
    LedgerRefused,
    LedgerRightMissing,
    LedgerUnavailable,
    SchemaOutOfDate,
)
from tallystick.ledger.dsn import LedgerAddress
from tallystick.ledger.statements import migrations, statement

log = logging.getLogger(__name__)


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


_OLDEST_SERVER: Final = 150000


class Transaction:
    """Statements by name, within one transaction."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self.feed = ""
        self.partitions: Mapping[int, str] = {}
        """Names for generations, as `topic-partition`: an error then says which."""

    def rows(self, name: str, /, **parameters: object) -> list[Any]:
        """All rows that the statement gives."""
        return self._run(name, parameters).fetchall()

    def row(self, name: str, /, **parameters: object) -> Any | None:
        """The only row that the statement gives; None if it gives none."""
        return self._run(name, parameters).fetchone()

    def one(self, name: str, /, **parameters: object) -> Any:
        """The row of a statement that always gives one."""
        row = self.row(name, **parameters)
        if row is None:
            raise LedgerRefused(name, "it gave no row")
        return row

    def change(self, name: str, /, **parameters: object) -> int:
        """How many rows the statement changed."""
        return self._run(name, parameters).rowcount

    def streamed(self, name: str, rows_at_a_time: int, /, **parameters: object) -> Iterator[Any]:
        """The rows that the statement gives, kept by the server until they are asked for."""
        try:
            with self._connection.cursor(name=name) as cursor:
                cursor.itersize = rows_at_a_time
                cursor.execute(statement(name).query, parameters)
                yield from cursor
        except psycopg.Error as error:
            raise translated(error, name, self.feed, self.partitions) from error

    def script(self, name: str, text: bytes) -> None:
        """Run several statements at once: a migration."""
        try:
            self._connection.execute(text)
        except psycopg.Error as error:
            raise translated(error, name, self.feed, self.partitions) from error

    def _run(self, name: str, parameters: Mapping[str, object]) -> psycopg.Cursor[Any]:
        try:
            # Without parameters psycopg would leave `%%` as it is.
            sent = {key: _as_sent(each) for key, each in parameters.items()}
            return self._connection.execute(statement(name).query, sent)
        except psycopg.Error as error:
            raise translated(error, name, self.feed, self.partitions) from error


class _InUtc(TimestamptzLoader):
    """Instants come with the one time zone that we use."""

    def load(self, data: Buffer) -> datetime:
        return super().load(data).astimezone(UTC)


class _OpenConnection:
    """The connection, while there is one."""

    def __init__(self) -> None:
        self.connection: psycopg.Connection[Any] | None = None

    def drop(self) -> None:
        if self.connection is not None:
            self.connection.close()
            self.connection = None


class LedgerConnection:
    """The ledger's database, one transaction at a time."""

    def __init__(
        self,
        address: LedgerAddress,
        *,
        checks_schema: bool = True,
        patience: timedelta | None = None,
    ) -> None:
        self._address = address
        self._patience = patience
        self._checks_schema = checks_schema
        self._open = _OpenConnection()
        # A forgotten ledger gives its connection back; `__del__` would come too late in a cycle.
        weakref.finalize(self, self._open.drop)
        self._lock = threading.RLock()
        self._is_busy = False

    def __repr__(self) -> str:
        return f"LedgerConnection({self._address})"

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction in which all statements see the same instant."""
        with self._transaction("begin_read", _lost_commit) as transaction:
            yield transaction

    @contextmanager
    def writing(
        self, lost_commit: Callable[[str], LedgerError] | None = None
    ) -> Iterator[Transaction]:
        """A transaction that is committed when the block ends well, undone when it raises.

        `lost_commit` makes the error for a connection that died at COMMIT, when nobody knows.
        """
        with self._transaction("begin_write", lost_commit or _lost_commit) as transaction:
            yield transaction

    def rows(self, name: str, /, **parameters: object) -> list[Any]:
        """All rows that a statement gives which reads."""
        with self.reading() as transaction:
            return transaction.rows(name, **parameters)

    def row(self, name: str, /, **parameters: object) -> Any | None:
        """The only row that such a statement gives; None if it gives none."""
        with self.reading() as transaction:
            return transaction.row(name, **parameters)

    def one(self, name: str, /, **parameters: object) -> Any:
        """The row of such a statement that always gives one."""
        with self.reading() as transaction:
            return transaction.one(name, **parameters)

    def change(self, name: str, /, **parameters: object) -> int:
        """How many rows a statement changed, in a transaction of its own."""
        with self.writing() as transaction:
            return transaction.change(name, **parameters)

    def close(self) -> None:
        """Give the connection back; the next use opens another."""
        with self._lock:
            self._open.drop()

    @contextmanager
    def _transaction(
        self, begin: str, lost_commit: Callable[[str], LedgerError]
    ) -> Iterator[Transaction]:
        with self._lock:
            if self._is_busy:
                raise LedgerRefused(begin, "this thread has a transaction of this ledger open")
            connection, transaction = self._begun(begin)
            self._is_busy = True
            try:
                yield transaction
                self._commit(connection, lost_commit)
            except BaseException:
                self._undo(connection)
                raise
            finally:
                self._is_busy = False

    def _begun(self, begin: str) -> tuple[psycopg.Connection[Any], Transaction]:
        """A transaction on a living connection: one that died since its last use is replaced."""
        connection = self._open.connection
        if connection is not None and not connection.closed:
            transaction = Transaction(connection)
            try:
                self._enter(transaction, begin)
            except LedgerUnavailable as error:
                log.info("The ledger's connection was lost, opening another: %s", error.describe())
            else:
                return connection, transaction
        self._open.drop()
        connection = self._open.connection = self._opened()
        transaction = Transaction(connection)
        try:
            transaction.row("keep_alive")
            self._enter(transaction, begin)
            self._check(transaction)
        except BaseException:
            self._open.drop()
            raise
        return connection, transaction

    def _enter(self, transaction: Transaction, begin: str) -> None:
        transaction.change(begin)
        if self._patience is not None:
            milliseconds = int(self._patience.total_seconds() * 1000)
            transaction.row("hurry", milliseconds=str(milliseconds))

    def _commit(
        self, connection: psycopg.Connection[Any], lost_commit: Callable[[str], LedgerError]
    ) -> None:
        status = connection.info.transaction_status
        if status is TransactionStatus.UNKNOWN:
            raise LedgerUnavailable("the connection was lost before COMMIT")
        if status is not TransactionStatus.INTRANS:
            # The server would answer COMMIT with a rollback, and no error.
            raise LedgerRefused("commit", "an earlier statement of this transaction failed")
        try:
            connection.execute(statement("commit").query)
        except psycopg.Error as error:
            # A pooler says so by a protocol violation when it has lost the server.
            if connection.closed or isinstance(error, psycopg.errors.ProtocolViolation):
                raise lost_commit(reason_of(error)) from error
            raise translated(error, "commit", "", {}) from error

    def _undo(self, connection: psycopg.Connection[Any]) -> None:
        """Roll back; where that is impossible, drop the connection and let the server do it."""
        status = connection.info.transaction_status
        if status is TransactionStatus.IDLE:
            return
        if status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
            try:
                connection.execute(statement("rollback").query)
            except psycopg.Error as error:
                log.info("The ledger's connection is dropped: %s", reason_of(error))
            else:
                return
        self._open.drop()

    def _opened(self) -> psycopg.Connection[Any]:
        try:
            opened: psycopg.Connection[Any] = psycopg.connect(
                **self._address.parameters,  # type: ignore[arg-type]  # libpq's own names
                autocommit=True,
                prepare_threshold=None,  # a pooler may give each transaction another session
                row_factory=namedtuple_row,
            )
            opened.adapters.register_loader("timestamptz", _InUtc)
            return opened
        except psycopg.Error as error:
            raise not_connected(self._address.without_secrets(str(error))) from error

    def _check(self, transaction: Transaction) -> None:
        version = transaction.one("server_version").server_version
        if version < _OLDEST_SERVER:
            reason = f"the server is PostgreSQL {version // 10000}; 15 or newer is needed"
            raise LedgerRefused("connect", reason)
        if self._checks_schema:
            found, wanted = schema_found(transaction), len(migrations())
            if found != wanted:
                raise SchemaOutOfDate(found, wanted)


class Tables:
    """Some of the ledger's tables: each question, and each change, is a transaction of its own."""

    def __init__(self, connection: LedgerConnection) -> None:
        self._connection = connection


def _as_sent(value: object) -> object:
    """The value; numbers in a list as the text of an array, for psycopg writes each by itself.

    Statements cast their arrays.
    """
    if not isinstance(value, list) or not {int, NoneType}.issuperset(map(type, value)):
        return value
    numbers = ("NULL" if each is None else str(each) for each in value)
    return f"{{{','.join(numbers)}}}"


def schema_found(session: Transaction) -> int:
    """The schema's number; 0 where the ledger was never migrated."""
    if not session.one("schema_exists").schema_exists:
        return 0
    return int(session.one("schema_version").schema_version)


def _lost_commit(reason: str) -> LedgerError:
    return LedgerUnavailable(f"the connection died at COMMIT, so look before you repeat: {reason}")
