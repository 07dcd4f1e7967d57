"""The command line beside an Airflow whose connections are not in the environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from tallystick.errors import ConnectionMissing
from tests.orchestration.conftest import ROOT, SETTINGS

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
