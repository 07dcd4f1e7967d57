"""The ledger over TLS, through a pooler, and over a fail-over: what holds, and what is told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from sandbox import Sandbox
from sandbox.clusters.authority import Authority
from sandbox.clusters.ledger_tls import DATABASE, READER, RUNNER, LedgerTls, TlsPostgres
from sandbox.service import Home
from tallystick.domain.batches.batch import Attempt
from tallystick.domain.batches.states import CommitAnswer
from tallystick.domain.identities import Owner
from tallystick.errors import (
    CommitOutcomeUnknown,
    LedgerAccessRefused,
    LedgerBehind,
    LedgerRefused,
    LedgerRightMissing,
    LedgerUnavailable,
)
from tallystick.ledger.connection import LedgerConnection as LedgerSession
from tallystick.ledger.dsn import ledger_address
from tallystick.ledger.ledger import Ledger
from tallystick.settings.connections import connection_in
from tallystick.settings.ledger_connection import LedgerConnection
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.ledger_pooler import Pooler
from tests.support.ledger_standby import APPLICATION, Standby
from tests.support.ledger_story import FEED, MINUTE, LedgerStory
from tests.support.sandbox_fixtures import running
from tests.support.scripted_broker import Kind
from tests.support.story import a_landed_story


@pytest.fixture(scope="module")
def cluster(sandbox: Sandbox) -> Iterator[LedgerTls]:
    """A running ledger with TLS."""
    with running(sandbox, LedgerTls) as found:
        yield found


@pytest.fixture(scope="module")
def server(cluster: LedgerTls) -> TlsPostgres:
    """Its server."""
    return cluster.server


def heads(dsn: str) -> Any:
    """What a ledger says, if one comes in."""
    with closing(Ledger(dsn)) as ledger:
        return ledger.feed_heads(most_runs=1)


# TLS ----------------------------------------------------------------------------------------------


def test_the_connection_lands_and_reconciles_as_the_role_that_runs(
    cluster: LedgerTls, tmp_path: Path
) -> None:
    found = connection_in(cluster.connections(), "ledger_default")
    dsn = LedgerConnection.of(found).dsn
    with psycopg.connect(dsn) as hand:
        encrypted = hand.execute("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        assert encrypted.fetchone() == (True,)
    story = a_landed_story(dsn, tmp_path, 10, 5)
    assert story.published_offsets() == {0: list(range(15)), 1: list(range(15))}
    assert reconcile(story.services()).findings == ()
    assert heads(cluster.server.dsn(DATABASE, role=READER))
    with (
        closing(Ledger(cluster.server.dsn(DATABASE, role=READER))) as reader,
        pytest.raises(LedgerRightMissing),
    ):
        reader.fold(FEED)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sslrootcert": "/no/such/ca.pem"}, 'root certificate file "/no/such/ca.pem"'),
        ({"sslrootcert": "STRANGER"}, "SSL error: "),
        ({"host": "db.example", "hostaddr": "127.0.0.1"}, "does not match host name"),
        ({"sslmode": "disable"}, "pg_hba.conf rejects connection|no encryption"),
        ({"sslmode": "verify-ful"}, "invalid sslmode value"),
        ({"password": "wrong"}, "password authentication failed"),
        ({"user": "nobody"}, "password authentication failed|does not exist"),
        ({"dbname": "nowhere"}, 'database "nowhere" does not exist'),
        ({"require_auth": "md5"}, "authentication method requirement"),
    ],
    ids=str,
)
def test_what_no_try_mends_is_refused_with_the_connections_name(
    server: TlsPostgres, tmp_path: Path, change: dict[str, str], said: str
) -> None:
    if change.get("sslrootcert") == "STRANGER":
        change = {"sslrootcert": str(Authority(tmp_path / "stranger").ca)}
    parts = {**psycopg.conninfo.conninfo_to_dict(server.dsn(DATABASE, role=RUNNER)), **change}
    with pytest.raises(LedgerAccessRefused, match=said) as caught:
        heads(psycopg.conninfo.make_conninfo("", **parts))
    assert not caught.value.retry
    assert "connection ledger_default" in str(caught.value)
    assert server.password(RUNNER) not in str(caught.value)


def test_a_second_role_takes_over_while_the_password_is_changed(server: TlsPostgres) -> None:
    """As docs/install.md says it."""
    with server.connect() as admin:
        admin.execute(f"CREATE ROLE other LOGIN PASSWORD 'word' IN ROLE {RUNNER}".encode())
    old = Ledger(server.dsn(DATABASE, role=RUNNER))
    old.feed_heads(most_runs=1)
    dsn = server.dsn(DATABASE, role=RUNNER)
    other = dsn.replace(f"//{RUNNER}:{server.password(RUNNER)}@", "//other:word@")
    with server.connect() as admin:
        admin.execute(f"ALTER ROLE {RUNNER} PASSWORD 'changed'".encode())
        try:
            old.feed_heads(most_runs=1)
            with closing(Ledger(other)) as ledger:
                ledger.fold(FEED)
            with pytest.raises(LedgerAccessRefused):
                heads(dsn)
        finally:
            word = server.password(RUNNER)
            admin.execute(f"ALTER ROLE {RUNNER} PASSWORD '{word}'".encode())
            old.close()
            admin.execute(b"DROP ROLE other")


# A pooler -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_of_transactions_or_sessions_may_stand_between(
    server: TlsPostgres, tmp_path: Path, mode: str
) -> None:
    """With one session for all of transactions: whatever one leaves behind meets the next."""
    pooler = Pooler(server, mode, sessions=1 if mode == "transaction" else 20)
    pooler.start()
    try:
        dsn = pooler.dsn(RUNNER)
        hurried = Ledger(dsn, timedelta(seconds=3))
        story = a_landed_story(dsn, tmp_path, 10)
        hurried.feed_heads(most_runs=1)
        with psycopg.connect(dsn, autocommit=True) as stranger:
            for name, usual in (("statement_timeout", "0"), ("lock_timeout", "0")):
                assert stranger.execute(f"SHOW {name}".encode()).fetchone() == (usual,)
        reconcile(story.services())
        with closing(Ledger(dsn)) as ledger:
            ledger.fold(FEED)
        hurried.close()
    finally:
        pooler.stop()
        pooler.purge()


def test_a_pooler_of_statements_is_refused_at_the_first_one(server: TlsPostgres) -> None:
    pooler = Pooler(server, "statement", sessions=1)
    pooler.start()
    try:
        with pytest.raises(LedgerRefused, match="must pool sessions or transactions") as caught:
            heads(pooler.dsn(RUNNER))
        assert not caught.value.retry
    finally:
        pooler.stop()
        pooler.purge()


@pytest.fixture
def own_server(sandbox: Sandbox) -> Iterator[TlsPostgres]:
    """A server that a test may kill."""
    found = TlsPostgres(sandbox.home, "ledger-primary")
    found.start()
    yield found
    found.kill()
    found.purge()


def write_while(ledger: LedgerSession, happens: Callable[[], None]) -> None:
    """A transaction in the middle of which something happens."""
    with ledger.writing() as transaction:
        transaction.row("server_version")
        happens()
        transaction.row("server_version")


def test_behind_a_pooler_a_server_that_is_away_is_waited_for(own_server: TlsPostgres) -> None:
    """In the middle of a transaction, on a session that was open, and on a new one."""
    pooler = Pooler(own_server, "transaction", sessions=1)
    pooler.start()
    connection = LedgerSession(ledger_address(pooler.dsn(RUNNER)))
    try:
        assert heads(pooler.dsn(RUNNER)) == []
        with pytest.raises(LedgerUnavailable):
            write_while(connection, own_server.kill)
        with pytest.raises(LedgerUnavailable):
            write_while(connection, lambda: None)
        with pytest.raises(LedgerUnavailable):
            heads(pooler.dsn(RUNNER))
    finally:
        connection.close()
        pooler.stop()
        pooler.purge()


# A fail-over --------------------------------------------------------------------------------------


class Pair:
    """A server, and a standby that streams from it; addresses that name both."""

    def __init__(self, home: Home) -> None:
        self.primary = TlsPostgres(home, "ledger-primary")
        self.standby = Standby(self.primary, "ledger-standby")

    def start(self, *, synchronous: bool) -> None:
        self.primary.start()
        self.standby.start()
        if synchronous:
            self.ask("ALTER SYSTEM SET synchronous_commit = remote_apply")
            self.ask(f"ALTER SYSTEM SET synchronous_standby_names = '{APPLICATION}'")
            self.ask("SELECT pg_reload_conf()")
            self.until(f"SELECT sync_state = 'sync' FROM {SENDERS}")

    @property
    def dsn(self) -> str:
        """Of both, the standby first: it may only be read while the other one lives."""
        places = f"{self.standby.address},{self.primary.address}"
        return self.primary.dsn(DATABASE, role=RUNNER).replace(self.primary.address, places)

    def ask(self, statement: str) -> Any:
        with self.primary.connect() as admin:
            row = admin.execute(statement.encode())
            return row.fetchone() if row.description else None

    def until(self, question: str) -> None:
        deadline = time.monotonic() + 60
        while self.ask(question) != (True,):
            assert time.monotonic() < deadline, question

    def take_over(self) -> None:
        """The standby becomes the server."""
        self.standby.start()
        with self.standby.connect() as admin:
            assert admin.execute("SELECT pg_promote()").fetchone() == (True,)

    def end(self) -> None:
        for each in (self.standby, self.primary):
            each.kill()
            each.purge()


SENDERS = f"pg_stat_replication WHERE application_name = '{APPLICATION}'"


@pytest.fixture
def pair(sandbox: Sandbox) -> Iterator[Pair]:
    """Nothing runs yet."""
    found = Pair(sandbox.home)
    yield found
    found.end()


class Committing:
    """A commit that its server holds up, because the standby does not say that it has it."""

    def __init__(self, pair: Pair, attempt: Attempt) -> None:
        self._pair = pair
        self._ledger = Ledger(pair.dsn)
        self._pool = ThreadPoolExecutor(1)
        self.answer = self._pool.submit(self._ledger.commit, attempt)
        pair.until("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')")

    def end(self) -> None:
        self._pool.shutdown()
        self._ledger.close()


@pytest.mark.parametrize("did_arrive", [True, False])
def test_a_commit_in_a_fail_over_is_unknown_and_then_known(pair: Pair, did_arrive: bool) -> None:
    """The server has it on its disk either way, and dies before it has answered."""
    pair.start(synchronous=True)
    story = LedgerStory(pair.dsn)
    story.open({0: (0, 100)})
    attempt = story.verified((0, 0, 20))
    if did_arrive:
        with pair.standby.connect() as standby:
            standby.execute("SELECT pg_wal_replay_pause()")
    else:
        pair.standby.kill()
    committing = Committing(pair, attempt)
    if did_arrive:
        pair.until(f"SELECT flush_lsn >= pg_current_wal_flush_lsn() FROM {SENDERS}")
    pair.primary.kill()
    with pytest.raises(CommitOutcomeUnknown):
        committing.answer.result(60)
    pair.take_over()
    assert (story.ledger.take_up(attempt, MINUTE) is None) is did_arrive
    answer = CommitAnswer.ALREADY_COMMITTED if did_arrive else CommitAnswer.COMMITTED
    assert story.ledger.commit(attempt) is answer
    assert story.ledger.commit(attempt) is CommitAnswer.ALREADY_COMMITTED
    assert story.account().frontier == 20
    assert len(story.ledger.files(FEED)) == 1
    committing.end()
    story.ledger.close()


def test_nobody_takes_over_before_the_standby_is_promoted(pair: Pair) -> None:
    pair.start(synchronous=False)
    assert heads(pair.dsn) == []
    pair.primary.kill()
    with pytest.raises(LedgerUnavailable, match="read-only"):
        heads(pair.dsn)
    pair.take_over()
    assert heads(pair.dsn) == []


def test_a_standby_behind_the_name_of_the_server_is_waited_for(pair: Pair) -> None:
    """The name leads to the standby before it is promoted: it reads, and does not write yet."""
    pair.start(synchronous=False)
    LedgerStory(pair.dsn).open({0: (0, 10)})
    pair.until(f"SELECT replay_lsn = pg_current_wal_lsn() FROM {SENDERS}")
    with closing(Ledger(pair.standby.dsn(DATABASE, role=RUNNER))) as ledger:
        assert [each.feed for each in ledger.feed_heads(most_runs=1)] == [FEED]
        with pytest.raises(LedgerUnavailable, match="during recovery"):
            ledger.fold(FEED)
        pair.primary.kill()
        pair.take_over()
        ledger.fold(FEED)


def test_what_an_asynchronous_standby_lacks_is_noticed_and_entered(
    pair: Pair, tmp_path: Path
) -> None:
    pair.start(synchronous=False)
    story = a_landed_story(pair.dsn, tmp_path, 10)
    pair.until(f"SELECT replay_lsn = pg_current_wal_lsn() FROM {SENDERS}")
    pair.standby.kill()
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    assert not land_feed(story.services(), None, Owner("lost")).errors
    pair.primary.kill()
    pair.take_over()
    with pytest.raises(LedgerBehind):
        land_feed(story.services(), None, Owner("next"))
    assert rebuild(story.services()).is_whole
    for log in story.broker.logs.values():
        log.append(Kind.RECORD, 5)
    assert not land_feed(story.services(), None, Owner("next")).errors
    assert story.published_offsets() == {0: list(range(20)), 1: list(range(20))}
    assert reconcile(story.services()).findings == ()
