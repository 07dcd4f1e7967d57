"""The sandbox itself: it comes up, survives crashes and strangers, and leaves nothing behind."""

import contextlib
import getpass
import json
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from sandbox import Sandbox
from sandbox.entry.layout import ROOT
from sandbox.errors import SandboxError, ServiceFailed
from tests.support.busy import BUSY_SECONDS

LIGHT = ("kafka", "hdfs", "postgres")
RECORDS = 10


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A state directory in a private folder; whatever a test leaves running in it is ended."""
    with cleared_up(tmp_path) as directory:
        yield directory


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Such a directory for the tests that leave its services as they must be: up."""
    with cleared_up(tmp_path_factory.mktemp("lasting")) as directory:
        yield directory


@contextlib.contextmanager
def cleared_up(folder: Path) -> Iterator[Path]:
    """A directory with a space and a percent sign in its path."""
    folder.chmod(0o700)
    directory = folder / "100 % mine"
    directory.mkdir()
    yield directory
    Sandbox(directory).down(purge=True)
    assert processes_in(directory) == {}


def processes_in(directory: Path) -> dict[int, str]:
    """Every live process that works in the directory or names it, whoever recorded it."""
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                continue
            words = [process.cwd(), *process.cmdline()]
            if any(str(directory) in word for word in words):
                found[process.pid] = " ".join(words)[:200]
    return found


def tallystick(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line, as a person would use it."""
    return subprocess.run(
        [ROOT / "tallystick", *arguments],
        env={**os.environ, "TALLYSTICK_SANDBOX_DIR": str(directory)},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def produce(servers: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(topic, num_partitions=1)])[topic].result(30)
    producer = Producer({"bootstrap.servers": servers, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(topic, str(number))
    assert producer.flush(30) == 0


def consume(servers: str, topic: str) -> list[str]:
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "test", "auto.offset.reset": "error"}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        found = consumer.consume(RECORDS, timeout=30)
        assert [message.error() for message in found] == [None] * len(found)
        return [(message.value() or b"").decode() for message in found]
    finally:
        consumer.close()


def test_the_command_line_brings_services_up_and_leaves_nothing(directory: Path) -> None:
    assert tallystick(directory, "sandbox", "status").returncode == 1
    assert tallystick(directory, "sandbox", "env").returncode == 2

    up = tallystick(directory, "sandbox", "up", "--only", ",".join(LIGHT))
    assert up.returncode == 0, up.stderr
    for service in ("kafka", "namenode", "datanode", "postgres"):
        assert re.search(
            rf"^ {service} +ready +\S*127\.0\.0\.1:\d+ .*{service}\.log", up.stdout, re.M
        )
    assert tallystick(directory, "sandbox", "status").returncode == 0

    exports = tallystick(directory, "sandbox", "env").stdout
    shown = subprocess.run(
        [
            "sh",
            "-c",
            f'{exports}\necho "$KAFKA_BOOTSTRAP_SERVERS $WEBHDFS_URL $HDFS_URL $LEDGER_DSN"',
        ],
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    servers, webhdfs, hdfs, dsn = shown.stdout.split()
    produce(servers, "orders")
    assert consume(servers, "orders") == [str(number) for number in range(RECORDS)]
    with patient() as client:
        listing = client.get(f"{webhdfs}/webhdfs/v1/?op=LISTSTATUS")
    assert listing.status_code == httpx.codes.OK
    assert re.fullmatch(r"hdfs://127\.0\.0\.1:\d+", hdfs)
    with psycopg.connect(dsn) as ledger:
        assert ledger.execute("SELECT current_user, current_database()").fetchone() == (
            "tallystick",
            "tallystick",
        )
    foreign = f"{dsn.removesuffix('/tallystick')}/airflow"
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        psycopg.connect(foreign)

    for secret in ("state.json", "connections.json"):
        assert (directory / secret).stat().st_mode & 0o077 == 0

    before = Sandbox(directory).processes()
    again = tallystick(directory, "sandbox", "up", "--only", ",".join(LIGHT))
    assert again.returncode == 0
    assert set(Sandbox(directory).processes()) & set(before)  # not started anew

    down = tallystick(directory, "sandbox", "down")
    assert down.returncode == 0, down.stderr
    assert processes_in(directory) == {}
    assert not (directory / "connections.json").exists()
    assert tallystick(directory, "sandbox", "down").stderr.strip() == "nothing was running"


def test_data_survives_a_crash_of_the_machine(lasting: Path) -> None:
    sandbox = Sandbox(lasting, usual_ports={})
    sandbox.up(LIGHT)
    produce(sandbox.kafka.address, "orders")
    write(sandbox, "/proof", b"landed")
    with psycopg.connect(sandbox.postgres.dsn("tallystick")) as ledger:
        ledger.execute("CREATE TABLE proof AS SELECT 1 AS landed")
    addresses = sandbox.env()

    sandbox.kill()
    assert processes_in(lasting) == {}
    pretend_reboot(lasting)

    sandbox = Sandbox(lasting, usual_ports={})
    assert sandbox.processes() == []  # the live process that now has the old number is not ours
    sandbox.up(LIGHT)
    assert sandbox.env() == addresses
    assert consume(sandbox.kafka.address, "orders") == [str(number) for number in range(RECORDS)]
    assert read(sandbox, "/proof") == b"landed"
    write(sandbox, "/writable", b"again")
    with psycopg.connect(sandbox.postgres.dsn("tallystick")) as ledger:
        assert ledger.execute("SELECT landed FROM proof").fetchone() == (1,)


def test_each_service_can_be_killed_and_started_alone(lasting: Path) -> None:
    sandbox = Sandbox(lasting, usual_ports={})
    sandbox.up(LIGHT)
    produce(sandbox.kafka.address, "killed")

    for service in (sandbox.kafka, sandbox.hdfs.namenode, sandbox.hdfs.datanode, sandbox.postgres):
        service.kill()
        assert not service.is_running
        assert service.members() == []
    sandbox.postgres.start()
    sandbox.hdfs.start()
    sandbox.kafka.start()
    added = sandbox.kafka.add_broker()

    assert consume(added.address, "killed") == [str(number) for number in range(RECORDS)]
    assert not sandbox.hdfs.namenode.in_safe_mode()
    assert len(sandbox.hdfs.namenode.live_datanodes()) == 1
    assert all(
        service.missing() is None for service in [*sandbox.groups["kafka"], sandbox.postgres]
    )


def test_a_taken_port_is_replaced_and_told(directory: Path) -> None:
    sandbox = Sandbox(directory)
    sandbox.up(["postgres"])
    old = sandbox.home.ports["postgres"]
    sandbox.down()

    told: list[str] = []
    with contextlib.closing(socket.create_server(("127.0.0.1", old))):
        sandbox.up(["postgres"], report=told.append)
    new = sandbox.home.ports["postgres"]

    assert new != old
    assert f"port {old} is taken by another program: postgres uses {new}" in told
    with psycopg.connect(sandbox.env()["LEDGER_DSN"]) as ledger:
        assert ledger.info.port == new


def test_two_sandboxes_start_at_once_side_by_side(tmp_path: Path) -> None:
    sandboxes = [Sandbox(tmp_path / name) for name in ("one", "two")]
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda sandbox: sandbox.up(["postgres", "kafka"]), sandboxes))
        ports = [{name: s.home.ports[name] for name in ("postgres", "kafka")} for s in sandboxes]
        assert set(ports[0].values()).isdisjoint(ports[1].values())
        produce(sandboxes[0].kafka.address, "only-here")
        topics = [
            AdminClient({"bootstrap.servers": s.kafka.address}).list_topics(timeout=10).topics
            for s in sandboxes
        ]
        assert ["only-here" in found for found in topics] == [True, False]
        sandboxes[0].down(purge=True)
        assert sandboxes[1].kafka.missing() is None
        assert sandboxes[1].postgres.missing() is None
    finally:
        for sandbox in sandboxes:
            sandbox.down(purge=True)
    assert processes_in(tmp_path) == {}


def test_a_service_that_dies_at_start_tells_why_and_where(directory: Path) -> None:
    sandbox = Sandbox(directory)
    sandbox.up(["postgres"])
    sandbox.down()
    (sandbox.postgres.folder / "data" / "PG_VERSION").write_text("9.6\n")

    with pytest.raises(ServiceFailed) as failure:
        sandbox.postgres.start()

    assert "postgres died while starting" in str(failure.value)
    assert str(sandbox.postgres.log) in str(failure.value)
    assert "incompatible" in str(failure.value)


def test_an_unknown_service_is_refused_with_the_known_ones(directory: Path) -> None:
    with pytest.raises(SandboxError, match=r"zookeeper.*kafka, hdfs, postgres, airflow"):
        Sandbox(directory).up(["zookeeper"])


def test_airflow_has_four_healthy_parts_and_leaves_no_worker(directory: Path) -> None:
    sandbox = Sandbox(directory)
    sandbox.up(["airflow"])
    airflow = sandbox.airflow
    health = airflow.health()
    assert health is not None
    parts = ("metadatabase", "scheduler", "dag_processor", "triggerer")
    assert [health[part]["status"] for part in parts] == ["healthy"] * len(parts)

    env = sandbox.env()
    assert env["AIRFLOW_URL"] == airflow.url
    login = {"username": env["AIRFLOW_USER"], "password": env["AIRFLOW_PASSWORD"]}
    pools = f"{airflow.url}/api/v2/pools/spark_local"
    with patient() as client:
        assert client.post(f"{airflow.url}/auth/token", json=login).status_code == 201
        assert client.get(pools).status_code == httpx.codes.UNAUTHORIZED
        seen = client.get(pools, headers={"Authorization": f"Bearer {airflow.token()}"})
    assert seen.json()["slots"] == 1
    assert set(json.loads((directory / "connections.json").read_text())) >= {
        "AIRFLOW_CONN_KAFKA_DEFAULT",
        "AIRFLOW_CONN_WEBHDFS_DEFAULT",
        "AIRFLOW_CONN_SPARK_DEFAULT",
        "AIRFLOW_CONN_SPARK_SUBMIT",
        "AIRFLOW_CONN_LEDGER_DEFAULT",
    }
    assert listening_beyond_loopback(sandbox.processes()) == []

    # The workers of a killed scheduler live on, and ignore SIGTERM.
    airflow.scheduler.kill(whole_session=False)
    assert not airflow.scheduler.is_running
    assert airflow.scheduler.members() != []
    sandbox.down()
    assert processes_in(directory) == {}


def listening_beyond_loopback(pids: list[int]) -> list[str]:
    found = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):  # PostgreSQL's servers come and go
            found += psutil.Process(pid).net_connections(kind="tcp")
    listeners = [connection.laddr for connection in found if connection.status == "LISTEN"]
    return [f"{address.ip}:{address.port}" for address in listeners if address.ip != "127.0.0.1"]


def pretend_reboot(directory: Path) -> None:
    """Leave what a machine leaves that crashed and came up: numbers that are reused now."""
    file = directory / "state.json"
    state = json.loads(file.read_text())
    for sessions in state["sessions"].values():
        for session in sessions:
            session |= {"boot": "an earlier one", "leader": os.getpid()}
    file.write_text(json.dumps(state))
    lock = Sandbox(directory).postgres.folder / "data" / "postmaster.pid"
    lines = lock.read_text().splitlines()
    lock.write_text("\n".join([str(os.getppid()), *lines[1:]]) + "\n")


def write(sandbox: Sandbox, path: str, content: bytes) -> None:
    url = f"{sandbox.hdfs.namenode.web_url}/webhdfs/v1{path}"
    query = {"op": "CREATE", "overwrite": "true", "user.name": getpass.getuser()}
    there = httpx.put(url, params=query, trust_env=False, timeout=30)
    assert there.status_code == httpx.codes.TEMPORARY_REDIRECT, there.text
    done = httpx.put(there.headers["Location"], content=content, trust_env=False, timeout=30)
    assert done.status_code == httpx.codes.CREATED, done.text


def read(sandbox: Sandbox, path: str) -> bytes:
    url = f"{sandbox.hdfs.namenode.web_url}/webhdfs/v1{path}"
    query = {"op": "OPEN"}
    with patient() as client:
        return client.get(url, params=query, follow_redirects=True).content


def patient() -> httpx.Client:
    """For services that have just started."""
    return httpx.Client(trust_env=False, timeout=BUSY_SECONDS)
