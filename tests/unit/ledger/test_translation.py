"""Which of the server's and a pooler's errors may pass, and which no try mends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg import errors
from psycopg.pq import TransactionStatus

from tallystick.errors import CommitOutcomeUnknown, LedgerError, LedgerRefused, LedgerUnavailable
from tallystick.ledger.connection import LedgerConnection
from tallystick.ledger.dsn import ledger_address
from tallystick.ledger.translation import translated


def meaning(error: psycopg.Error, statement: str = "begin_write") -> LedgerError:
    return translated(error, statement, "orders", {})


@pytest.mark.parametrize(
    "said",
    [
        "server conn crashed?",
        "query_wait_timeout",
        "server login has been failing, try again later (server_login_retry)",
        "pgbouncer cannot connect to server",
        "server closed the connection unexpectedly",
    ],
)
def test_a_pooler_whose_server_is_away_may_be_asked_again(said: str) -> None:
    found = meaning(errors.ProtocolViolation(said))
    assert type(found) is LedgerUnavailable
    assert found.retry


def test_a_pooler_of_statements_is_refused() -> None:
    said = "transaction blocks not allowed in statement pooling mode"
    found = meaning(errors.ProtocolViolation(said))
    assert type(found) is LedgerRefused
    assert "must pool sessions or transactions" in found.describe()
    assert not found.retry


def test_a_standby_behind_the_name_of_the_server_may_be_promoted() -> None:
    """In any language; any other statement that the server does not support is refused."""
    error = errors.FeatureNotSupported("cannot set transaction read-write mode during recovery")
    assert type(meaning(error)) is LedgerUnavailable
    assert type(meaning(error, "fold_ranges")) is LedgerRefused


class PoolerAtCommit:
    """A session of a pooler that answers COMMIT when it has lost its server."""

    closed = False

    info = SimpleNamespace(transaction_status=TransactionStatus.INTRANS)

    def execute(self, query: bytes) -> None:
        raise errors.ProtocolViolation("server conn crashed?")


def test_a_commit_whose_server_the_pooler_has_lost_is_unknown() -> None:
    session: Any = PoolerAtCommit()
    ledger = LedgerConnection(ledger_address("host=db dbname=led"))
    with pytest.raises(CommitOutcomeUnknown):
        ledger._commit(session, lambda reason: CommitOutcomeUnknown("b", "a", reason))
