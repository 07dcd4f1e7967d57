"""Airflow's connections as ours."""

from __future__ import annotations

import json

import pytest

from tallystick.errors import ConnectionMissing


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
