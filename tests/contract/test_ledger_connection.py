"""The ledger's connection: what is refused, what is said, what is never said."""

from __future__ import annotations

import pickle
import socket
import threading
import traceback
from datetime import timedelta

import pytest

from tallystick.errors import (
    ConfigurationError,
    LedgerAccessRefused,
    LedgerError,
    LedgerRefused,
    LedgerUnavailable,
    SchemaOutOfDate,
)
from tallystick.ledger.connection import LedgerConnection
from tallystick.ledger.dsn import ledger_address
from tallystick.ledger.ledger import Ledger
from tallystick.ledger.statements import migrations
from tests.support.ledger_server import LedgerServer
from tests.support.ledger_story import FEED, MINUTE, TOPIC, LedgerStory, finding_of

WANTED = len(migrations())

SECRET = "s3cr3t-w0rd"


def everything_said(error: BaseException) -> str:
    """The error with all its causes, as a log would show it."""
    return "".join(traceback.format_exception(error)) + repr(error) + str(error)


@pytest.fixture
def closed_port() -> int:
    """A port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_a_ledger_that_does_not_answer_is_unavailable(closed_port: int) -> None:
    ledger = Ledger(f"postgresql://me:{SECRET}@127.0.0.1:{closed_port}/tallies")
    with pytest.raises(LedgerUnavailable, match="the ledger can't be reached") as caught:
        ledger.accounts(FEED)
    assert caught.value.retry
    assert caught.value.__cause__ is not None
    assert SECRET not in everything_said(caught.value)
    assert repr(ledger) == f"Ledger(LedgerConnection(me@127.0.0.1:{closed_port}/tallies))"


def test_a_wrong_password_is_not_shown(ledger_server: LedgerServer, ledger_database: str) -> None:
    dsn = f"postgresql://tallystick:{SECRET}@127.0.0.1:{ledger_server.port}/{ledger_database}"
    with pytest.raises(LedgerAccessRefused, match="password authentication failed") as caught:
        Ledger(dsn).accounts(FEED)
    assert not caught.value.retry
    assert "connection ledger_default" in str(caught.value)
    assert SECRET not in everything_said(caught.value)


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://me:{SECRET}@more@host/tallies",
        f"postgresql://me:{SECRET}",
        f"host=localhost password={SECRET} nonsense",
        f"{SECRET}",
        f"postgresql://me:{SECRET}@host:{SECRET}/tallies",
        f"host=a@{SECRET}",
    ],
)
def test_a_connection_string_that_is_not_understood_is_not_shown(dsn: str) -> None:
    with pytest.raises(ConfigurationError, match="special characters as %XX") as caught:
        Ledger(dsn)
    assert SECRET not in everything_said(caught.value)


def test_both_forms_of_a_connection_string_are_understood() -> None:
    by_url = ledger_address(f"postgresql://me:{SECRET}@db.example:6432/tallies")
    by_words = ledger_address(f"host=db.example port=6432 dbname=tallies user=me password={SECRET}")
    assert by_url == by_words
    assert str(by_url) == "me@db.example:6432/tallies"
    assert SECRET not in repr(by_url)
    assert by_url.parameters["connect_timeout"] == "10"
    assert ledger_address("host=a connect_timeout=3").parameters["connect_timeout"] == "3"
    assert by_url.without_secrets(f"x {SECRET} y") == "x *** y"


@pytest.mark.parametrize("name", ["host", "hostaddr"])
def test_of_several_hosts_the_one_that_may_be_written_to_is_taken(name: str) -> None:
    several = ledger_address(f"{name}=10.0.0.1,10.0.0.2").parameters
    assert several["target_session_attrs"] == "read-write"
    assert "target_session_attrs" not in ledger_address(f"{name}=10.0.0.1").parameters


@pytest.mark.parametrize(
    "misread",
    [
        "postgresql://u:12?cret@db/led",
        "postgresql://u:12?connect_timeout=3@db/led",
        "postgresql://u:a@b?c@db/led",
        "postgresql://u:a@b?application_name=c@db/led",
        "postgresql://u:Se?cret@db/led",
    ],
)
def test_a_misread_connection_string_is_refused_and_not_shown(misread: str) -> None:
    with pytest.raises(ConfigurationError, match=r"\(not shown\)"):
        ledger_address(misread)


def test_no_error_of_a_broken_connection_shows_the_password(
    ledger_server: LedgerServer, story: LedgerStory
) -> None:
    story.open({0: (0, 100)})
    with pytest.raises(LedgerError) as caught:
        story.freeze(story.batch_of((0, 0, 5)), story.batch_of((0, 4, 9)))
    assert ledger_server.password not in everything_said(caught.value)
    assert ledger_server.password not in repr(story.ledger)


def test_errors_cross_process_borders(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    with pytest.raises(LedgerError) as caught:
        story.freeze(story.batch_of((0, 0, 5)), story.batch_of((0, 4, 9)))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_a_ledger_that_was_never_migrated_is_refused(ledger_server: LedgerServer) -> None:
    database = ledger_server.fresh(template="template0")
    ledger = Ledger(ledger_server.dsn(database))
    with pytest.raises(SchemaOutOfDate, match=f"schema 0, this code needs {WANTED}") as caught:
        ledger.accounts(FEED)
    assert "tallystick ledger migrate" in str(caught.value)
    ledger_server.drop(database)


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("INSERT INTO schema_version (version, name) VALUES (99, 'from the future')", 99),
        ("DELETE FROM schema_version", 0),
    ],
    ids=["newer", "older"],
)
def test_another_schema_is_refused(story: LedgerStory, statement: str, found: int) -> None:
    with story.raw() as connection:
        connection.execute(statement.encode())
    ledger = Ledger(story.dsn)
    with pytest.raises(SchemaOutOfDate, match=f"schema {found}, this code needs {WANTED}"):
        ledger.record_findings(FEED, [finding_of()])
    with pytest.raises(SchemaOutOfDate), ledger.planning(FEED, TOPIC):
        pytest.fail("the session was entered")


def test_a_missing_right_is_refused_with_the_statements_name(
    story: LedgerStory, ledger_server: LedgerServer, ledger_database: str
) -> None:
    ledger_server.execute(ledger_database, "REVOKE INSERT ON finding FROM tallystick")
    with pytest.raises(LedgerRefused, match="refused record_findings: permission denied") as caught:
        story.ledger.record_findings(FEED, [finding_of()])
    assert not caught.value.retry


def test_a_standby_is_unavailable_not_refused(story: LedgerStory) -> None:
    connection = LedgerConnection(ledger_address(story.dsn))
    with pytest.raises(LedgerUnavailable, match="read-only transaction"):
        write_while_reading(connection)
    connection.close()


def write_while_reading(connection: LedgerConnection) -> None:
    with connection.reading() as transaction:
        transaction.change("enter_feed", feed=FEED, topic=TOPIC)


def test_a_lock_that_is_not_given_in_time_is_worth_a_retry(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.begin(story.planned((0, 0, 10)))
    story.ledger.close()
    connection = LedgerConnection(ledger_address(story.dsn))
    with story.raw() as rival, rival.transaction():
        rival.execute("SELECT FROM batch FOR UPDATE")
        with pytest.raises(LedgerUnavailable, match="lock timeout"):
            lock_soon(connection, attempt.batch_id)
    connection.close()


def lock_soon(connection: LedgerConnection, batch_id: str) -> None:
    with connection.writing() as transaction:
        transaction.script("impatience", b"SET LOCAL lock_timeout = '10ms'")
        transaction.row("lock_batch", batch_id=batch_id)


@pytest.mark.parametrize("patience", [None, timedelta(seconds=7)])
def test_a_session_keeps_nothing_from_one_transaction_to_the_next(
    story: LedgerStory, patience: timedelta | None
) -> None:
    """So a pooler may hand it to anybody between two."""
    names = ("TimeZone", "jit", "lock_timeout", "statement_timeout")
    settings = "SELECT " + ", ".join(f"current_setting('{each}') AS {each}" for each in names)
    with story.raw() as hand:
        before = hand.execute(settings.encode()).fetchone()
    connection = LedgerConnection(ledger_address(story.dsn), patience=patience)
    with connection.writing() as transaction:
        inside = transaction._connection.execute(settings.encode()).fetchone()
    assert inside is not None
    assert inside[:2] == ("UTC", "off")
    assert inside[2:] == (("2min", "0") if patience is None else ("7s", "7s"))
    opened = connection._open.connection
    assert opened is not None
    assert opened.execute(settings.encode()).fetchone() == before
    connection.close()


def test_a_closed_ledger_opens_again_when_it_is_used(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    story.ledger.close()
    story.ledger.close()
    assert story.account().frontier == 0


def test_threads_take_turns_on_one_ledger(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.begin(story.planned((0, 0, 10)))
    entered = threading.Event()
    order: list[str] = []

    def beat() -> None:
        entered.wait(20)
        story.ledger.renew_lease(attempt, MINUTE)
        order.append("beat")

    thread = threading.Thread(target=beat)
    thread.start()
    with story.ledger.planning(FEED, TOPIC) as session:
        entered.set()
        session.accounts()
        order.append("planned")
    thread.join(20)
    assert order == ["planned", "beat"]
