"""A Spark Connect server that asks for a token, behind TLS with a certificate of one's own.

Each client is a process of its own: gRPC reads once whom it trusts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typing_extensions import override

from sandbox.ports import Ports
from sandbox.service import Home
from sandbox.services.spark_connect import NAME, SparkConnect
from sandbox.state import State
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import create_topic
from tests.support.tls_pipe import Pipe, pipe_to, write_certificate
from tests.support.whole_way import Way, environ_of
from tests.trouble.command import Command, Folder

TOKEN = "s3cr3t/+t0ken;=%"
TRUST = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"
FAILED = 3


class GuardedServer(SparkConnect):
    """Lets nobody in without the token, and speaks no TLS itself: no server of Spark does."""

    @override
    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "SPARK_CONNECT_AUTHENTICATE_TOKEN": TOKEN}

    @override
    def provision(self) -> None:
        """Nothing: the first work has no token."""

    @property
    def port(self) -> int:
        return self.home.ports[NAME]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServer]:
    place = tmp_path_factory.mktemp("guarded")
    server = GuardedServer(Home(place, state := State(place), Ports(state, {})), "local[2]")
    try:
        server.start()
        yield server
    finally:
        server.kill()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_certificate(tmp_path_factory.mktemp("tls") / "localhost.pem", "localhost")


@pytest.fixture
def way(kafka: str, hdfs: Any, ledger_dsn: str) -> Way:
    environ = environ_of(kafka, hdfs, ledger_dsn)
    way = Way(create_topic(kafka, partitions=1), environ)
    produce(kafka, way.topic, messages(50), partition=0)
    return way


@pytest.fixture
def land(way: Way, tmp_path: Path) -> Callable[..., Command]:
    """Lands the feed by the command line, through the pipe."""
    folder = Folder(tmp_path / "feeds")
    folder.write(way.feed())

    def land(
        pipe: Pipe, *, token: str | None = TOKEN, trusted: Path | None, **extra: Any
    ) -> Command:
        connection = {
            "conn_type": "spark_connect",
            "host": "127.0.0.1",
            "port": pipe.port,
            "password": token,
            "extra": extra,
        }
        environ = way.environ | {"AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(connection)}
        if trusted:
            environ = environ | {TRUST: str(trusted)}
        return Command(folder, environ, "land", way.name).ended()

    return land


def test_a_token_lets_in_by_an_authority_of_one_s_own_and_shows_nowhere(
    guarded: GuardedServer, certificate: Path, way: Way, land: Callable[..., Command]
) -> None:
    with pipe_to(guarded.port, certificate) as pipe:
        done = land(pipe, trusted=certificate, use_ssl=True)

    assert done.code == 0, done.err
    assert way.rows() == way.produced({0: (0, 50)})
    assert TOKEN.encode() in pipe.heard
    shown = done.out + done.err + guarded.log.read_text() + stored(way)
    assert TOKEN not in shown


def stored(way: Way) -> str:
    """All that the ledger has of attempts and batches."""
    with psycopg.connect(way.environ["LEDGER_DSN"]) as ledger:
        rows = [
            ledger.execute(f"SELECT t::text FROM {table} t").fetchall()
            for table in ("attempt", "batch", "feed")
        ]
    assert rows[0]
    return str(rows)


REFUSED = {
    "a wrong token": ({"token": "wrong"}, "UNAUTHENTICATED: Invalid authentication token"),
    "no token": ({"token": None}, "UNAUTHENTICATED: No authentication token provided"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_token_that_is_refused_is_told_as_that(
    case: str, guarded: GuardedServer, certificate: Path, way: Way, land: Callable[..., Command]
) -> None:
    given, words = REFUSED[case]
    with pipe_to(guarded.port, certificate) as pipe:
        refused = land(pipe, trusted=certificate, use_ssl=True, **given)

    assert_refused(refused, words)
    assert not way.rows()


@pytest.mark.parametrize("name", ["localhost", "other.example"])
def test_a_server_that_nobody_vouches_for_hears_no_token(
    name: str, guarded: GuardedServer, tmp_path: Path, land: Callable[..., Command]
) -> None:
    own = write_certificate(tmp_path / "own.pem", name)
    trusted, words = (
        (None, "CERTIFICATE_VERIFY_FAILED")
        if name == "localhost"
        else (own, "Hostname Verification Check failed")
    )
    with pipe_to(guarded.port, own) as pipe:
        refused = land(pipe, trusted=trusted, use_ssl=True)

    assert_refused(refused, words)
    assert TOKEN.encode() not in pipe.heard


def test_a_token_is_not_sent_in_clear(guarded: GuardedServer, land: Callable[..., Command]) -> None:
    with pipe_to(guarded.port) as pipe:
        refused = land(pipe, trusted=None)

    assert_refused(refused, "WRONG_VERSION_NUMBER")
    assert pipe.heard
    assert TOKEN.encode() not in pipe.heard


def assert_refused(command: Command, words: str) -> None:
    assert command.code == FAILED, (command.out, command.err)
    assert "Spark Connect server sc://127.0.0.1:" in command.err
    assert words in command.err
    assert TRUST in command.err
    assert TOKEN not in command.out + command.err
