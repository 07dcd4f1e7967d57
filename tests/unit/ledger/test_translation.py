"""Which errors of a server, a pooler or a new session may pass, and which no try mends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from psycopg import errors
from psycopg.pq import TransactionStatus

from tallystick.errors import (
    CommitOutcomeUnknown,
    LedgerAccessRefused,
    LedgerError,
    LedgerRefused,
    LedgerUnavailable,
)
from tallystick.ledger.connection import LedgerConnection
from tallystick.ledger.dsn import ledger_address
from tallystick.ledger.translation import not_connected, translated


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


AT = 'connection to server at "db", port 5432 failed: '
LASTING = [
    "SSL error: certificate verify failed",
    "SSL error: tlsv1 alert unknown ca",
    'server certificate for "db" (and 1 other name) does not match host name "10.0.0.1"',
    'root certificate file "/no/ca.pem" does not exist',
    'private key file "/etc/key.pem" has group or world access; file must have permissions',
    "server does not support SSL, but SSL was required",
    'FATAL:  no pg_hba.conf entry for host "::1", user "u", database "d", no encryption',
    "FATAL:  connection requires a valid client certificate",
    'FATAL:  password authentication failed for user "u"',
    'FATAL:  role "u" does not exist',
    'FATAL:  database "d" does not exist',
    'authentication method requirement "md5" failed: server requested SASL authentication',
    "fe_sendauth: no password supplied",
    'invalid sslmode value: "verify-ful"',
    "FATAL:  unsupported startup parameter: options",
]
PASSING = [
    "Connection refused",
    "timeout expired",
    "SSL error: unexpected eof while reading",
    "SSL SYSCALL error: Connection reset by peer",
    "SSL connection has been closed unexpectedly",
    "FATAL:  the database system is starting up",
    "FATAL:  sorry, too many clients already",
    "session is read-only",
    "could not translate host name",
]


@pytest.mark.parametrize(
    "said",
    [
        'connection to server at "certificates-db.example.com" (10.0.0.1), port 5432 failed:'
        " Connection refused",
        'could not translate host name "pg.certificate.svc" to address: Temporary failure in name'
        " resolution",
        'connection to server on socket "/run/sslmode/.s.PGSQL.5432" failed: No such file',
        'FATAL:  role "certificate" is not ready',
    ],
)
def test_words_in_a_name_are_no_reason(said: str) -> None:
    assert type(not_connected(said)) is LedgerUnavailable
    assert type(not_connected(f"{said}\nAll:\n- host: 'certificate', port: '1': {said}")) is (
        LedgerUnavailable
    )


@pytest.mark.parametrize("said", LASTING)
def test_what_no_try_mends_is_a_refusal(said: str) -> None:
    error = not_connected(AT + said)
    assert type(error) is LedgerAccessRefused
    assert not error.retry
    assert said in error.describe()


@pytest.mark.parametrize("said", PASSING)
def test_what_may_pass_is_tried_again(said: str) -> None:
    error = not_connected(AT + said)
    assert type(error) is LedgerUnavailable
    assert error.retry


def several(*said: str) -> str:
    """As psycopg tells of several hosts."""
    hosts = "".join(f"\n- host: 'h{n}', port: '5432': {AT}{each}" for n, each in enumerate(said))
    return f"{AT}{said[-1]}\nMultiple connection attempts failed. All failures were:{hosts}"


def test_one_of_several_hosts_that_may_be_back_is_waited_for() -> None:
    assert type(not_connected(several(LASTING[0], PASSING[0]))) is LedgerUnavailable
    assert type(not_connected(several(PASSING[0], LASTING[0]))) is LedgerUnavailable
    refused = not_connected(several(LASTING[0], LASTING[2]))
    assert type(refused) is LedgerAccessRefused
    assert "'h0'" in refused.describe()
    assert "'h1'" in refused.describe()
