"""Airflow's connections as ours."""

from __future__ import annotations

import json
import logging
import threading

import pytest

from tallystick.errors import ConnectionMissing
from tallystick.ports.progress import Progress
from tallystick.report import progress_line
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
