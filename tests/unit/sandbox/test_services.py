"""The sandbox's services: their ports, sessions, homes and disk, and when each is ready."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import psutil
import pytest

from sandbox import processes
from sandbox.connections import SPARK_MASTER, airflow_connections
from sandbox.errors import SandboxError, ServiceFailed
from sandbox.ports import FREE_FROM, FREE_UNTIL, Ports, answers, is_free
from sandbox.processes import Session
from sandbox.service import Home
from sandbox.services.hdfs import DataNode, Family, NameNode
from sandbox.services.spark_connect import MEMORY_SETTINGS, SparkConnect
from sandbox.stack import LEAST_FREE_BYTES, USUAL_PORTS, Sandbox, require_free_disk
from sandbox.state import State, write_private
from tallystick.settings.connections import connection_in
from tallystick.settings.spark_connect import SparkConnectConnection
from tallystick.settings.spark_connection import SparkConnection
from tallystick.spark.command import SHORT_LIVED_CONSUMERS


def ports_in(directory: Path, usual: dict[str, int] | None = None) -> Ports:
    directory.mkdir(exist_ok=True)
    return Ports(State(directory), usual or {})


def a_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_the_usual_port_is_taken_when_free_and_kept(tmp_path: Path) -> None:
    usual = a_free_port()
    first = ports_in(tmp_path, {"kafka": usual})
    first.claim("kafka")
    first.release("kafka")
    again = ports_in(tmp_path, {"kafka": usual + 1})
    again.claim("kafka")
    assert (first["kafka"], again["kafka"]) == (usual, usual)
    assert again.moved == []
    again.release("kafka")


def test_a_port_that_a_killed_server_is_just_closing_is_kept(tmp_path: Path) -> None:
    """Its configuration, and its clients, know the port already."""
    ports = ports_in(tmp_path)
    ports.claim("kafka")
    ports.release("kafka")
    with socket.create_server(("127.0.0.1", ports["kafka"])) as dying, ThreadPoolExecutor() as pool:
        again = ports_in(tmp_path)
        claimed = pool.submit(again.claim, "kafka")
        time.sleep(0.3)
        dying.close()
        claimed.result(10)
    assert (again["kafka"], again.moved) == (ports["kafka"], [])
    again.release("kafka")


def test_two_sandboxes_that_choose_at_once_choose_differently(tmp_path: Path) -> None:
    usual = a_free_port()
    many = [ports_in(tmp_path / str(number), {"kafka": usual}) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda ports: ports.claim("kafka"), many))
    assert len({ports["kafka"] for ports in many}) == 8
    assert sorted(ports["kafka"] == usual for ports in many) == [False] * 7 + [True]
    for ports in many:
        ports.release("kafka")


def test_a_port_that_a_stranger_took_is_replaced_and_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        taken = stranger.getsockname()[1]
        assert answers(taken)
        assert not is_free(taken)
        ports = ports_in(tmp_path, {"kafka": taken})
        ports.claim("kafka")
    assert FREE_FROM <= ports["kafka"] < FREE_UNTIL
    assert ports.moved == [f"port {taken} is taken by another program: kafka uses {ports['kafka']}"]
    ports.release("kafka")


def test_a_port_that_was_never_chosen_is_asked_for_in_words(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="sandbox up"):
        ports_in(tmp_path)["kafka"]


def test_secrets_stay_the_same_and_private(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: State(tmp_path).secret("airflow"), range(16)))
    assert len(found) == 1
    assert len(found.pop()) >= 24
    assert (tmp_path / "state.json").stat().st_mode & 0o777 == 0o600


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    file.write_text("old")
    file.chmod(0o644)
    write_private(file, "new")
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]


# A leader with a child in a process group of its own that ignores SIGTERM, as Airflow's workers do.
STUBBORN = """
import os, signal, time
if os.fork() == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open("ready", "w").close()
while True:
    time.sleep(60)
"""

# Its main thread ends, and another one goes on.
HALF_DEAD = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    argv = [sys.executable, "-c", STUBBORN]
    started = processes.spawn(argv, env=os.environ, cwd=tmp_path, log=tmp_path / "log")
    assert processes.wait_until((tmp_path / "ready").exists, 20)
    yield started
    processes.kill(started)


def test_a_session_holds_leader_and_child(session: Session) -> None:
    assert session.leads()
    assert len(session.processes()) == 2


def test_the_child_is_still_known_when_the_leader_is_dead(session: Session) -> None:
    processes.kill_leader(session)
    assert not session.leads()
    (orphan,) = session.processes()
    assert orphan.pid != session.leader


def test_a_leader_of_which_a_thread_still_lives_is_not_dead(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", HALF_DEAD]
    session = processes.spawn(argv, env=os.environ, cwd=tmp_path, log=tmp_path / "log")
    leader = psutil.Process(session.leader)
    try:
        assert processes.wait_until(lambda: leader.status() == psutil.STATUS_ZOMBIE, 20)
        assert session.leads()
        processes.kill(session)
        assert not session.leads()
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            leader.kill()


def test_stopping_ends_what_ignores_the_signal(session: Session) -> None:
    members = session.processes()
    processes.stop(session, with_signal=signal.SIGTERM, grace_seconds=0.2)
    assert session.processes() == []
    assert not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in members)


def test_killing_leaves_nothing(session: Session) -> None:
    processes.kill(session)
    assert session.processes() == []


@pytest.mark.parametrize(
    "change", [{"started_ticks": 1}, {"boot": "another"}], ids=["number re-used", "rebooted"]
)
def test_a_stranger_with_the_same_number_is_not_ours(
    session: Session, change: dict[str, int | str]
) -> None:
    stale = dataclasses.replace(session, **change)  # type: ignore[arg-type]
    assert not stale.leads()
    assert stale.processes() == []


def test_a_program_started_by_a_name_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        processes.spawn(["/no/such/program"], env={}, cwd=tmp_path, log=tmp_path / "log")


def home(directory: Path) -> Home:
    return Home(directory, State(directory), Ports(State(directory), {}))


def test_a_checkout_made_anew_at_the_same_path_does_not_meet_the_old_ones_data(
    tmp_path: Path,
) -> None:
    """The passwords of that data went with the checkout that was deleted."""
    old = home(tmp_path).outside("postgres")
    assert home(tmp_path).outside("postgres") == old
    (tmp_path / "state.json").unlink()
    assert home(tmp_path).outside("postgres") != old


def test_each_service_has_a_place_of_its_own(tmp_path: Path) -> None:
    assert home(tmp_path).outside("postgres") != home(tmp_path).outside("hdfs")


def _with_free(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)


def test_nothing_is_started_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_free(LEAST_FREE_BYTES - 1, monkeypatch)
    with pytest.raises(SandboxError, match=r"2\.0 GB are free.*TALLYSTICK_SANDBOX_DIR"):
        require_free_disk(tmp_path)


def test_a_disk_with_just_enough_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_free(LEAST_FREE_BYTES, monkeypatch)
    require_free_disk(tmp_path)


REGISTERED = {"BPServiceActorInfo": json.dumps([{"ActorState": "RUNNING"}])}


def said(live: Mapping[str, Any], safe_mode: str = "") -> dict[str, Any]:
    """What a NameNode says."""
    return {"LiveNodes": json.dumps(live), "Safemode": safe_mode}


@pytest.mark.parametrize(
    ("datanode", "namenode", "missing"),
    [
        (None, None, "it does not answer"),
        ({}, None, "it is not registered with the NameNode"),
        (REGISTERED, said({}), "namenode counts no live DataNode"),
        # For a moment after its registration no file can be written.
        (REGISTERED, said({"it": {"capacity": 0}}), "namenode does not know yet what room"),
        (REGISTERED, said({"it": {"capacity": 9}}, "on"), "namenode is in safe mode"),
        (REGISTERED, said({"it": {"capacity": 9}}), None),
    ],
)
def test_a_datanode_is_ready_once_a_file_can_be_written(
    tmp_path: Path,
    datanode: dict[str, Any] | None,
    namenode: dict[str, Any] | None,
    missing: str | None,
) -> None:
    told = {
        "Hadoop:service=DataNode,name=DataNodeInfo": datanode,
        "Hadoop:service=NameNode,name=NameNodeInfo": namenode,
    }

    def send(method: str, url: str, query: Mapping[str, str]) -> httpx.Response:
        bean = told[query["qry"]]
        request = httpx.Request(method, url)
        return httpx.Response(200, json={"beans": [] if bean is None else [bean]}, request=request)

    state = State(tmp_path)
    family = Family(Home(tmp_path, state, Ports(state, {})), send=send)
    name_node = NameNode(family)
    node = DataNode(family, name_node)
    names = (*name_node.port_names, *node.port_names)
    family.home.ports.claim(*names)
    family.home.ports.release(*names)
    found = node.missing()
    assert found == missing if missing is None else (found or "").startswith(missing)


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
