"""The sandbox's Spark Connect server: who names it, and when it does its first work."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sandbox.connections import SPARK_MASTER, airflow_connections
from sandbox.errors import ServiceFailed
from sandbox.services.spark_connect import MEMORY_SETTINGS, SparkConnect
from sandbox.stack import USUAL_PORTS, Sandbox
from tallystick.settings.connections import connection_in
from tallystick.settings.spark_connection import SparkConnectConnection, SparkConnection
from tallystick.spark.command import SHORT_LIVED_CONSUMERS


@pytest.fixture
def stack(tmp_path: Path) -> Sandbox:
    """One with its ports chosen, and without any service."""
    made = Sandbox(tmp_path, usual_ports={})
    made.home.ports.claim(*USUAL_PORTS)
    made.home.ports.release(*USUAL_PORTS)
    return made


def test_feeds_land_by_the_server_unless_they_name_spark_submit(stack: Sandbox) -> None:
    environ = airflow_connections(stack)
    server = SparkConnectConnection.of(connection_in(environ, "spark_default"))
    assert server.address == stack.spark_connect.address
    assert SparkConnection.of(connection_in(environ, "spark_submit")).master == SPARK_MASTER


def test_the_server_forgets_what_it_has_read_as_soon_as_spark_submit_does(stack: Sandbox) -> None:
    command = stack.spark_connect.command()

    assert SHORT_LIVED_CONSUMERS.items() <= MEMORY_SETTINGS.items()
    assert {f"{key}={value}" for key, value in MEMORY_SETTINGS.items()} <= set(command)


@pytest.mark.parametrize("variable", ["SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"])
def test_java_is_told_of_one_garbage_collector(
    variable: str, stack: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"):
        monkeypatch.delenv(each, raising=False)
    options = "spark.driver.extraJavaOptions=-Duser.timezone=UTC"
    assert f"{options} -XX:+UseParallelGC" in stack.spark_connect.command()
    monkeypatch.setenv(variable, "-Xss4m -XX:+UseSerialGC")
    assert options in stack.spark_connect.command()


def test_a_server_does_its_first_work_once_and_a_new_one_again(
    stack: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def run(argv: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        asked.append(argv)
        return subprocess.CompletedProcess(argv, 0)

    monkeypatch.setattr(subprocess, "run", run)
    for pid in (7, 7, 8):
        monkeypatch.setattr(SparkConnect, "pid", pid)
        stack.spark_connect.provision()
    assert len(asked) == 2
    assert all(stack.spark_connect.address in argv for argv in asked)


def test_a_server_that_does_no_work_is_not_ready(
    stack: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkConnect, "pid", 7)
    monkeypatch.setattr(subprocess, "run", lambda argv, **_: subprocess.CompletedProcess(argv, 1))
    for _ in range(2):
        with pytest.raises(ServiceFailed, match="did not do its first work"):
            stack.spark_connect.provision()
