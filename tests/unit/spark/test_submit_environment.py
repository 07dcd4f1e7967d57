"""What spark-submit inherits: what its machine has set, and nothing of Airflow or the ledger."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tallystick.ports.spark_runner import LandingOrder
from tallystick.spark.place import SparkPlace
from tallystick.spark.submit_runner import SubmitRunner

SECRET = "pa55-word"
HIDDEN = (
    "AIRFLOW_CONN_KAFKA_DEFAULT",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
    "_AIRFLOW_WWW_USER_PASSWORD",
    "LEDGER_DSN",
)


def test_the_connections_configuration_is_the_only_one() -> None:
    inherited = {"HADOOP_CONF_DIR": "/theirs", "YARN_CONF_DIR": "/theirs", "PATH": "/bin"}
    found = SparkPlace("yarn", hadoop_conf="/ours").environment(inherited)
    assert found == {"HADOOP_CONF_DIR": "/ours", "PATH": "/bin"}
    assert SparkPlace("yarn").environment(inherited) == inherited


def test_connections_are_not_inherited_by_spark_submit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "spark-submit"
    program.write_text("#!/bin/sh\nenv\n")
    program.chmod(0o700)
    for name in HIDDEN:
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("KRB5CCNAME", "FILE:/tmp/ticket")
    caplog.set_level(logging.DEBUG)
    runner = SubmitRunner(
        SparkPlace("local[2]", spark_submit=str(program)),
        application=tmp_path / "land.py",
        feed_conf={},
        kafka_secrets={},
    )

    order = LandingOrder("orders", "b1", "a1", "hdfs://nn:8020/plan.json", plan_text="{}")
    runner.run(order, started=lambda _: None)

    assert "KRB5CCNAME=FILE:/tmp/ticket" in caplog.text
    assert SECRET not in caplog.text
