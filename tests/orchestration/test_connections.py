"""Airflow's connections as ours, and the command line beside an Airflow that alone has them."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tallystick.errors import ConnectionMissing
from tallystick.ports.progress import Progress
from tallystick.report import progress_line
from tests.orchestration.conftest import ROOT, SETTINGS
from tests.support.story import a_feed

CONNECTIONS = {
    "kafka_default": '{"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}',
    "webhdfs_default": (
        '{"conn_type": "webhdfs", "host": "127.0.0.1", "port": 1, "login": "me",'
        ' "extra": {"fs": "hdfs://127.0.0.1:1"}}'
    ),
    "ledger_default": '{"conn_type": "postgres", "host": "127.0.0.1", "port": 1, "schema": "t"}',
    "spark_default": '{"conn_type": "spark", "host": "local[2,4]"}',
}


def test_every_part_of_a_connection_is_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallystick.orchestration.connections import airflow_connection

    parts = {
        "conn_type": "kafka",
        "host": "broker",
        "port": 9092,
        "login": "reader",
        "password": "s3cret-word",
        "schema": "s",
        "extra": {"bootstrap.servers": "broker:9092"},
    }
    monkeypatch.setenv("AIRFLOW_CONN_SOMEWHERE", json.dumps(parts))
    found = airflow_connection("somewhere")
    assert (found.conn_id, found.conn_type, found.host, found.port) == (
        "somewhere",
        "kafka",
        "broker",
        9092,
    )
    assert (found.login, found.schema) == ("reader", "s")
    assert found.password is not None
    assert found.password.get_secret_value() == "s3cret-word"
    assert dict(found.extra) == {"bootstrap.servers": "broker:9092"}
    assert "s3cret-word" not in repr(found)


def test_a_missing_connection_is_named_and_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallystick.orchestration.connections import airflow_connection

    monkeypatch.delenv("AIRFLOW_CONN_SPARK_DEFAULT", raising=False)
    with pytest.raises(ConnectionMissing) as caught:
        airflow_connection("spark_default")
    assert "spark_default" in str(caught.value)
    assert "AIRFLOW_CONN_SPARK_DEFAULT" in str(caught.value)
    assert not caught.value.retry


@pytest.mark.parametrize("missing", CONNECTIONS)
@pytest.mark.filterwarnings("default")  # of libraries that the adapters bring along
def test_every_connection_is_looked_up_before_anything_is_opened(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tallystick.orchestration.connections import services_of

    for name, text in CONNECTIONS.items():
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", text)
    monkeypatch.delenv(f"AIRFLOW_CONN_{missing.upper()}")
    with pytest.raises(ConnectionMissing, match=missing), services_of(a_feed()):
        pass


@pytest.mark.filterwarnings("default")  # of libraries that the adapters bring along
def test_the_log_of_a_task_that_takes_long_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tallystick.orchestration.connections import services_of

    was_said = threading.Event()

    class Waiting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "feed orders: land, 3 of 8 files, " in record.getMessage():
                was_said.set()

    monkeypatch.setattr(progress_line, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(progress_line.log, "handlers", [Waiting()])
    for name, text in CONNECTIONS.items():
        monkeypatch.setenv(f"AIRFLOW_CONN_{name.upper()}", text)

    with services_of(a_feed()) as services:
        services.progress(Progress("land", 3, 8, "files"))
        assert was_said.wait(60)


CONNECTION = "ledger_default"
Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def command() -> Command:
    """Runs `findings`, or other words, as somebody beside Airflow would: in a process."""
    usual = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "plugins"), **SETTINGS}

    def run(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        words = words or ("findings", "orders", "--json")
        argv = [sys.executable, "-m", "tallystick", *words]
        return subprocess.run(
            argv, env=usual | environ, capture_output=True, text=True, check=False
        )

    return run


@pytest.fixture
def stored(airflow_database: None, ledger_dsn: str) -> Iterator[str]:
    """The ledger's connection as Airflow's form stores it; what the database's column holds."""
    from airflow.models import Connection
    from airflow.settings import Session
    from sqlalchemy import text

    extra = json.dumps({"dsn": ledger_dsn})
    with Session() as session:
        made = Connection(conn_id=CONNECTION, conn_type="postgres", extra=extra)
        session.add(made)
        session.commit()
        [column] = session.execute(
            text("SELECT extra FROM connection WHERE conn_id = :id"), {"id": CONNECTION}
        ).scalars()
    yield column
    with Session() as session:
        session.execute(text("DELETE FROM connection WHERE conn_id = :id"), {"id": CONNECTION})
        session.commit()


def test_a_connection_of_airflows_database_is_found_and_decrypted(
    command: Command, stored: str, ledger_dsn: str
) -> None:
    assert ledger_dsn not in stored

    told = command()

    assert (told.returncode, told.stderr) == (0, "")
    assert json.loads(told.stdout)["findings"] == []


def test_a_connection_of_a_secrets_backend_is_found(
    command: Command, airflow_database: None, ledger_dsn: str, tmp_path: Path
) -> None:
    file = tmp_path / "connections.json"
    file.write_text(
        json.dumps({CONNECTION: {"conn_type": "postgres", "extra": {"dsn": ledger_dsn}}})
    )

    told = command(
        AIRFLOW__SECRETS__BACKEND="airflow.secrets.local_filesystem.LocalFilesystemBackend",
        AIRFLOW__SECRETS__BACKEND_KWARGS=json.dumps({"connections_file_path": str(file)}),
    )

    assert (told.returncode, told.stderr) == (0, "")
    assert json.loads(told.stdout)["findings"] == []


def test_a_connection_that_is_nowhere_names_each_place_that_was_asked(
    command: Command, airflow_database: None
) -> None:
    told = command()

    assert told.returncode == 2
    assert told.stderr.splitlines() == [
        "error: connection 'ledger_default' does not exist; looked for:"
        " AIRFLOW_CONN_LEDGER_DEFAULT, or LEDGER_DSN; in Airflow, EnvironmentVariablesBackend,"
        " MetastoreBackend.",
        f"next: {ConnectionMissing.next_step}",
    ]


def test_why_airflow_could_not_answer_is_said(command: Command, stored: str) -> None:
    told = command(AIRFLOW__CORE__FERNET_KEY=Fernet.generate_key().decode())

    assert told.returncode == 2
    assert "MetastoreBackend (InvalidToken: it was stored under another Fernet key)" in told.stderr


def test_doctor_asks_airflow_for_pool_and_limits(command: Command, airflow_database: None) -> None:
    told = command("doctor", "orders", AIRFLOW__CORE__MAX_MAP_LENGTH="77")

    assert (told.returncode, told.stderr) == (1, "")
    missing = [line.split("'")[1] for line in told.stdout.splitlines()[1:9:2]]
    assert missing == ["kafka_default", "webhdfs_default", "spark_default", CONNECTION]
    assert told.stdout.splitlines()[9:] == [
        "ok    orders: pool: default_pool has 128 slots.",
        "ok    orders: Airflow's limits: one run lands at most 77 batches ([core] max_map_length).",
    ]
