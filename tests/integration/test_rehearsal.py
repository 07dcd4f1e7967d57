"""What would stop a landing is found by a rehearsal, before anything is claimed or read."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from typing_extensions import override

from sandbox import Sandbox
from sandbox.connections import SPARK_MASTER
from sandbox.entry.class_archive import OPTIONS
from sandbox.entry.jars import connector_jars
from sandbox.ports import Ports
from sandbox.service import Home
from sandbox.services.kafka import Kafka
from sandbox.state import State
from tallystick.errors import ConfigurationError, StorageRefused
from tallystick.spark.submit_version import require_version
from tests.support.connect_servers import server_of_its_own
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import create_topic
from tests.support.landed_files import names_in
from tests.support.sandbox_fixtures import HdfsPlace
from tests.support.spark_place import PLACE
from tests.support.store_hdfs import Superuser
from tests.support.whole_way import Way, environ_of

NewWay = Callable[..., Way]
SUBMIT = {
    "conn_type": "spark",
    "host": SPARK_MASTER,
    "extra": {"deploy-mode": "client", "jars": connector_jars()},
}


@pytest.fixture
def new_way(kafka: str, hdfs: Any, ledger_dsn: str, spark_connect: str) -> NewWay:
    """Makes a topic of ten records, and a feed that the server lands, with these connections."""

    def made(**connections: object) -> Way:
        topic = create_topic(kafka, partitions=1)
        produce(kafka, topic, messages(10), partition=0)
        named = {f"AIRFLOW_CONN_{name}": json.dumps(each) for name, each in connections.items()}
        return Way(topic, environ_of(kafka, hdfs, ledger_dsn, spark_connect) | named)

    return made


@pytest.fixture
def superuser(sandbox: Sandbox, hdfs: HdfsPlace) -> Superuser:
    return Superuser(sandbox, hdfs.webhdfs_url, hdfs.hdfs_url, hdfs.user)


def asked_as(user: str, hdfs: HdfsPlace) -> dict[str, object]:
    """A connection to HDFS."""
    url = urlsplit(hdfs.webhdfs_url)
    extra = {"fs": hdfs.hdfs_url}
    return {
        "conn_type": "webhdfs",
        "host": url.hostname,
        "port": url.port,
        "login": user,
        "extra": extra,
    }


def claimed_nothing(way: Way) -> bool:
    with way.services() as services:
        return not services.ledger.batches(services.feed_name) and way.staged() == []


def test_what_went_well_is_kept_and_costs_the_next_landing_nothing(
    new_way: NewWay, kafka: str, hdfs: HdfsPlace
) -> None:
    way = new_way()
    kept = f"{way.root}/_rehearsals/{way.name}"

    way.landed()
    first = names_in(hdfs.webhdfs_url, kept)
    produce(kafka, way.topic, messages(5), partition=0)
    way.landed()

    assert len(first) == 1
    assert names_in(hdfs.webhdfs_url, kept) == first
    assert names_in(hdfs.webhdfs_url, f"{way.root}/{way.name}") == ["gen=1"]
    assert way.staged() == []
    assert way.rows() == way.produced({0: (0, 15)})


def test_a_server_that_writes_as_the_superuser_is_another_user(
    new_way: NewWay, hdfs: HdfsPlace, superuser: Superuser
) -> None:
    way = new_way(WEBHDFS_DEFAULT=asked_as("airflow", hdfs))
    superuser.make(way.root)
    superuser.ask("PUT", way.root, op="SETOWNER", owner="airflow")

    with pytest.raises(ConfigurationError, match=f"as whom Spark writes is '{hdfs.user}'.*airflow"):
        way.land()

    assert claimed_nothing(way)


def test_a_server_that_may_not_write_as_another_user_does_is_named(
    new_way: NewWay,
    hdfs: HdfsPlace,
    superuser: Superuser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HADOOP_USER_NAME", "spark")
    with server_of_its_own(tmp_path) as own:
        url = urlsplit(own.address)
        warm = {"conn_type": "spark_connect", "host": url.hostname, "port": url.port}
        way = new_way(WEBHDFS_DEFAULT=asked_as("airflow", hdfs), SPARK_DEFAULT=warm)
        superuser.make(way.root)
        superuser.ask("PUT", way.root, op="SETOWNER", owner="airflow")

        with pytest.raises(ConfigurationError, match="as whom Spark writes is 'spark'"):
            way.land()

    assert claimed_nothing(way)


def test_a_quota_of_the_feeds_directory_stops_a_landing_and_lets_it_go_on(
    new_way: NewWay, superuser: Superuser, kafka: str
) -> None:
    way = new_way()
    way.landed()
    feed = f"{way.root}/{way.name}"
    superuser.limit_names(feed, 1)
    produce(kafka, way.topic, messages(5), partition=0)

    # What was rehearsed before the quota came is found out by one landing, and by no second one.
    [error] = way.land().errors
    produce(kafka, way.topic, messages(5), partition=0)
    with pytest.raises(StorageRefused, match="name quota is used up"):
        way.land()
    with way.services() as services:
        batches = services.ledger.batches(services.feed_name)
    superuser.ask("PUT", feed, op="SETQUOTA", namespacequota=2**63 - 1)
    way.landed()

    assert isinstance(error, StorageRefused)
    assert len(batches) == 2
    assert way.rows() == way.produced({0: (0, 20)})


def test_a_spark_that_the_connector_is_not_made_for_is_told_from_where_it_lies() -> None:
    require_version(PLACE)
    other = replace(PLACE, jars=("/opt/jars/spark-sql-kafka-0-10_2.12-3.5.7.jar",))

    with pytest.raises(ConfigurationError) as caught:
        require_version(other)

    told = str(caught.value)
    assert PLACE.spark_submit in told
    assert "version of Spark is '4.0." in told
    assert "(Scala 2.13.16, Java 17" in told
    assert "3.5.x with Scala 2.12" in told


def test_a_program_that_is_no_spark_says_what_it_has_said() -> None:
    with pytest.raises(ConfigurationError, match="No such file"):
        require_version(replace(PLACE, spark_submit="/nowhere/spark-submit"))


class AdvertisedByName(Kafka):
    """Whoever has its address is sent to a name, which is another address for some."""

    @override
    def _properties(self) -> dict[str, str]:
        by_name = {"advertised.listeners": f"PLAINTEXT://localhost:{self.home.ports[self.name]}"}
        return super()._properties() | by_name


def test_a_broker_that_spark_alone_cannot_reach_is_named(
    new_way: NewWay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(f"127.0.0.2 localhost\n127.0.0.1 {socket.gethostname()}\n")
    node = AdvertisedByName(
        Home(tmp_path / "kafka", state := State(tmp_path / "kafka"), Ports(state, {}))
    )
    try:
        node.start()
        servers = {"conn_type": "kafka", "extra": {"bootstrap.servers": node.bootstrap_servers}}
        topic = create_topic(node.bootstrap_servers, partitions=2)
        produce(node.bootstrap_servers, topic, messages(10), partition=0)
        way = replace(new_way(KAFKA_DEFAULT=servers, SPARK_DEFAULT=SUBMIT), topic=topic)
        with monkeypatch.context() as environment:
            environment.setenv(OPTIONS, f"-Djdk.net.hosts.file={hosts}")
            with pytest.raises(ConfigurationError) as caught:
                way.land()
        assert claimed_nothing(way)
        way.landed()
        assert len(way.rows()) == 10
    finally:
        node.kill()

    port = urlsplit(f"//{node.address}").port
    assert f"asked by Spark: a broker's address is 'localhost:{port} of node 1'" in str(
        caught.value
    )
