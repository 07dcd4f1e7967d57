"""A feed whose connection names a Spark Connect server is landed, searched and scrubbed there.

One process never has both a regular session of Spark and a remote one, so none of these tests has
the former.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
import requests

from sandbox import Sandbox
from tallystick.domain.finding_codes import Level
from tallystick.domain.verdicts import Verdict
from tallystick.errors import (
    ApplicationFailed,
    ApplicationOverdue,
    BrokersUnreached,
    ConfigurationError,
    RecordsUnreadable,
    SecretsExposed,
    SparkUnavailable,
    StorageRefused,
)
from tallystick.ports.file_store import FileStore
from tallystick.spark.connect_runner import LANDING, ConnectRunner
from tallystick.spark.connect_server import ConnectServer, session_of
from tallystick.workflows.landing.land import rehearse
from tests.support.connect_servers import server_at, server_of_its_own
from tests.support.connect_works import frozen
from tests.support.kafka_producers import NANOSECONDS, Message, messages, produce
from tests.support.kafka_topics import ANY_TIME, create_topic, wait_until
from tests.support.landed_files import names_below, names_in
from tests.support.whole_way import Way, environ_of

# Writes a file without an end, in an attempt's session: what a killed task leaves behind.
ORPHAN = """
import sys
from tallystick.spark.connect_server import ConnectServer, session_of
url, attempt, place = sys.argv[1:]
server = ConnectServer(url, lambda sid: f"{url}/;session_id={sid};user_id=tallystick")
with server.session(session_of(attempt, "landing"), {}, reads_kafka=True) as spark:
    print("writing", flush=True)
    spark.range(10**12).selectExpr("sha2(cast(id as string), 256) AS x").write.parquet(place)
"""


@pytest.fixture(scope="module")
def server(spark_connect: str) -> ConnectServer:
    return server_at(spark_connect)


@pytest.fixture
def new_way(kafka: str, hdfs: Any, ledger_dsn: str, server: ConnectServer) -> Callable[..., Way]:
    """Makes a topic, and a feed that the server lands."""
    environ = environ_of(kafka, hdfs, ledger_dsn, server.master)
    return lambda **layout: Way(create_topic(kafka, **layout), environ)


def test_a_feed_lands_and_is_read_in_full_by_the_server_that_its_connection_names(
    new_way: Callable[..., Way], kafka: str
) -> None:
    way = new_way(partitions=2)
    produce(kafka, way.topic, messages(500), partition=0)
    produce(kafka, way.topic, messages(20), partition=1)
    feed = way.feed(spark={"conf": {"spark.sql.shuffle.partitions": "3"}})

    way.landed(feed=feed)
    report = way.reconciled(Level.L3)

    assert way.rows() == way.produced({0: (0, 500), 1: (0, 20)})
    assert report.verdict is Verdict.PROVEN_OK
    with way.services() as services:
        [batch] = services.ledger.batches(services.feed_name)
        [attempt] = batch.attempts
    session = session_of(attempt.attempt.attempt_id, LANDING)
    assert attempt.application_id == f"connect:{session}"


def test_a_session_that_is_over_is_not_the_one_that_its_thread_asks(server: ConnectServer) -> None:
    """A client without the rest of PySpark has a schema's text read by the active session."""
    for _ in range(2):
        with server.session(str(uuid4()), {}, reads_kafka=False) as spark:
            assert type(spark).active() is spark


def test_one_record_that_the_server_cannot_read_is_set_aside_alone(
    new_way: Callable[..., Way], kafka: str
) -> None:
    way = new_way(config=ANY_TIME)
    bad = Message(b"in nanoseconds", timestamp_ms=NANOSECONDS)
    produce(kafka, way.topic, [*messages(50), bad, *messages(10)], partition=0)

    told = [way.land() for _ in range(3)]

    assert [[type(error) for error in each.errors] for each in told] == [
        [ApplicationFailed],
        [RecordsUnreadable],
        [],
    ]
    [found] = told[1].findings
    assert (found.from_offset, found.until_offset) == (50, 51)
    assert [each.offset for each in way.rows()] == [each for each in range(61) if each != 50]


def test_a_server_that_is_another_user_of_hdfs_reads_nothing_before_that_is_told(
    new_way: Callable[..., Way], kafka: str, hdfs: Any
) -> None:
    """It may write, for it is HDFS's own user; what it writes is not ours."""
    way = new_way()
    url = f"{hdfs.webhdfs_url}/webhdfs/v1{way.root}"
    for op in ({"op": "MKDIRS"}, {"op": "SETOWNER", "owner": "airflow"}):
        told = requests.put(url, params={**op, "user.name": hdfs.user}, timeout=30)
        told.raise_for_status()
    ours = {"conn_type": "webhdfs", "host": hdfs.webhdfs_url, "login": "airflow"}
    ours["extra"] = json.dumps({"fs": hdfs.hdfs_url})
    way.environ["AIRFLOW_CONN_WEBHDFS_DEFAULT"] = json.dumps(ours)
    produce(kafka, way.topic, messages(5), partition=0)

    [error] = way.land().errors

    assert isinstance(error, StorageRefused)
    assert "is it another user?" in str(error)
    assert "user=airflow" in str(error)
    with way.services() as services:
        [batch] = services.ledger.batches(services.feed_name)
        assert batch.attempts[0].application_id is None, "it counts against no batch"


def test_a_server_is_rehearsed_with_once_a_day(
    new_way: Callable[..., Way], kafka: str, hdfs: Any
) -> None:
    way = new_way()
    for number in range(2):
        produce(kafka, way.topic, messages(5), partition=0)
        way.landed()
        staging = f"{way.root}/_staging"
        probes = [each for each in names_in(hdfs.webhdfs_url, staging) if "_probe-" in each]
        assert len(probes) == 1, number


def test_feeds_that_rehearse_with_one_server_at_the_same_time_all_go_on(
    new_way: Callable[..., Way], hdfs: Any
) -> None:
    way, together = new_way(), Barrier(4)
    servers = [uuid4().hex for _ in range(6)]

    def rehearsed(_: int) -> None:
        with way.services() as services:
            for server in servers:
                together.wait(60)
                rehearse(services, way.root, server, partial(write_at, services.store))

    def write_at(store: FileStore, uri: str) -> None:
        store.write(f"{uri[uri.index(way.root) :]}/part", b"what Spark would write")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(rehearsed, range(4)))
    assert len(names_in(hdfs.webhdfs_url, f"{way.root}/_staging")) == len(servers)


def test_brokers_that_the_server_alone_cannot_reach_are_named_and_blame_no_batch(
    new_way: Callable[..., Way],
) -> None:
    way = new_way(partitions=2)
    for each in range(2):
        produce(way.environ["KAFKA_BOOTSTRAP_SERVERS"], way.topic, messages(5), partition=each)
    nowhere = {"kafka.bootstrap.servers": "127.0.0.1:1", "kafka.default.api.timeout.ms": "3000"}

    reports = [
        way.land(kafka_options={**nowhere, "kafka.request.timeout.ms": "2000"}) for _ in range(3)
    ]

    for each in reports:
        [error] = each.errors
        assert isinstance(error, BrokersUnreached)
        assert "can't reach Kafka at 127.0.0.1:1, or at a broker that is named there" in str(error)
    [batch] = way.landed().batches
    assert {each.batch_id for report in reports for each in report.batches} == {batch.batch_id}


def test_what_a_killed_task_left_writing_is_gone_and_cannot_begin_again(
    server: ConnectServer, hdfs: Any
) -> None:
    attempt, below = uuid4().hex, f"/orphans/{uuid4().hex}"
    argv = [sys.executable, "-c", ORPHAN, server.master, attempt, hdfs.hdfs_url + below]

    def files() -> list[str]:
        return names_below(hdfs.webhdfs_url, below)

    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as orphan:
        try:
            assert orphan.stdout is not None
            assert orphan.stdout.readline() == "writing\n"
            wait_until(files, "it writes", seconds=60)
        finally:
            orphan.kill()
    assert files()

    ConnectRunner(server, {}, timedelta(minutes=5)).interrupt(attempt)

    wait_until(lambda: not files(), "what it wrote is gone", seconds=30)
    late = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert "SparkUnavailable" in late.stderr
    assert not files()


def test_a_landing_that_takes_too_long_is_ended(
    new_way: Callable[..., Way], server: ConnectServer, kafka: str
) -> None:
    way = new_way()
    produce(kafka, way.topic, messages(50), partition=0)

    done = way.land(ConnectRunner(server, {}, timedelta(milliseconds=1)))

    assert [type(each) for each in done.errors] == [ApplicationOverdue]


def test_a_property_that_a_session_cannot_set_is_refused(
    new_way: Callable[..., Way], kafka: str
) -> None:
    way = new_way()
    produce(kafka, way.topic, messages(5), partition=0)
    feed = way.feed(spark={"conf": {"spark.executor.memory": "2g"}})

    [error] = way.land(feed=feed).errors

    assert isinstance(error, ConfigurationError)
    assert "spark.executor.memory" in str(error)


def test_secrets_are_refused_where_no_file_on_the_server_holds_them(
    new_way: Callable[..., Way],
) -> None:
    way = new_way()
    extra = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
    }
    kafka = {"conn_type": "kafka", "login": "vera", "password": "x", "extra": extra}
    secured = Way(way.topic, {**way.environ, "AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(kafka)})

    with pytest.raises(SecretsExposed, match="kafka-secrets"):
        secured.land()


def test_a_server_that_has_died_is_a_reason_to_try_again(
    new_way: Callable[..., Way], sandbox: Sandbox, kafka: str
) -> None:
    way = new_way()
    produce(kafka, way.topic, messages(50), partition=0)
    sandbox.spark_connect.kill()

    [error] = way.land().errors
    sandbox.up(only=["spark-connect"])
    way.landed()

    assert isinstance(error, SparkUnavailable)
    assert way.rows() == way.produced({0: (0, 50)})


def test_a_batch_has_the_rights_that_the_directory_of_its_feed_gives(
    new_way: Callable[..., Way], hdfs: Any, kafka: str
) -> None:
    way = new_way()
    acl = "user::rwx,user:analyst:r-x,group::r-x,other::---"
    feed = f"{hdfs.webhdfs_url}/webhdfs/v1{way.root}/{way.name}"
    requests.put(feed, params={"op": "MKDIRS", "user.name": hdfs.user}, timeout=30)
    default = ",".join(f"default:{each}" for each in acl.split(","))
    asked = {"op": "SETACL", "aclspec": f"user::rwx,group::r-x,other::r-x,{default}"}
    requests.put(feed, params={**asked, "user.name": hdfs.user}, timeout=30).raise_for_status()
    produce(kafka, way.topic, messages(5), partition=0)

    way.landed()

    landed = names_below(hdfs.webhdfs_url, f"{way.root}/{way.name}", hdfs.user)
    [path] = (each for each in landed if each.endswith(".parquet"))
    file = f"{hdfs.webhdfs_url}/webhdfs/v1{path}"
    told = {
        user: requests.get(file, params={"op": "OPEN", "user.name": user}, timeout=30).status_code
        for user in ("analyst", "somebody")
    }
    assert told == {"analyst": 200, "somebody": 403}


def test_a_proxy_for_the_web_is_none_for_the_cluster(
    new_way: Callable[..., Way], kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's and HDFS's clients go there directly, and so does the server's."""
    way = new_way()
    produce(kafka, way.topic, messages(5), partition=0)
    with monkeypatch.context() as environment:
        for name in ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy"):
            environment.setenv(name, "http://127.0.0.1:9")
            environment.setenv(name.upper(), "http://127.0.0.1:9")
        environment.delenv("no_proxy", raising=False)
        environment.setenv("NO_PROXY", ".example.com")
        way.landed()

    assert way.rows() == way.produced({0: (0, 5)})


@pytest.mark.parametrize(
    ("setting", "value"),
    [("spark.speculation", "true"), ("spark.connect.execute.reattachable.enabled", "false")],
)
def test_what_a_server_lacks_is_told_before_anything_is_read(
    tmp_path: Path, new_way: Callable[..., Way], kafka: str, setting: str, value: str
) -> None:
    way = new_way()
    produce(kafka, way.topic, messages(5), partition=0)
    with server_of_its_own(tmp_path, **{setting: value}) as own:
        [error] = way.land(ConnectRunner(server_at(own.address), {}, timedelta(minutes=5))).errors

    assert isinstance(error, ConfigurationError)
    assert f"{setting} is '{value}'" in str(error)


def test_a_session_that_is_opened_again_works_until_somebody_ends_it(server: ConnectServer) -> None:
    session_id = session_of(uuid4().hex, "search")
    for _ in range(2):
        with server.session(session_id, {}, reads_kafka=False, is_opened_again=True) as spark:
            assert spark.range(3).count() == 3

    server.end_session(session_id)

    with (
        pytest.raises(SparkUnavailable),
        server.session(session_id, {}, reads_kafka=False),
    ):
        pass


def test_a_frozen_server_holds_no_landing_for_longer_than_it_may(
    new_way: Callable[..., Way], server: ConnectServer, sandbox: Sandbox, kafka: str
) -> None:
    way = new_way()
    produce(kafka, way.topic, messages(50), partition=0)
    with frozen(sandbox.spark_connect):
        done = way.land(ConnectRunner(server, {}, timedelta(seconds=3)))

    assert [type(each) for each in done.errors] == [ApplicationOverdue]
    way.landed()
    assert way.rows() == way.produced({0: (0, 50)})
