"""Services that can be taken away, one Spark session, and feeds that land through both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tallystick.spark.command import landing_conf
from tests.support.kafka_topics import create_topic
from tests.support.ledger_server import LedgerServer
from tests.support.spark_place import JARS, PLACE
from tests.trouble.command import BOUND_SECONDS
from tests.trouble.place import Place, started
from tests.trouble.scene import NewScene, Scene

HERE = Path(__file__).parent
# PySpark leaves the sockets of collected results to the garbage collector.
PYSPARK_SOCKETS = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(2 * BOUND_SECONDS))  # a command is told of first
        if "place" in getattr(item, "fixturenames", ()):
            item.add_marker(PYSPARK_SOCKETS)


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory, ledger_server: LedgerServer) -> Iterator[Place]:
    """Kafka, HDFS and the ledger's server behind gates: nobody else's tests use them."""
    given = os.environ.get("TALLYSTICK_TROUBLE_SANDBOX")
    directory = Path(given) if given else tmp_path_factory.mktemp("trouble")
    with started(directory, ledger_server.port) as found:
        yield found


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The warm session of the test run."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(PLACE.master).config("spark.jars", ",".join(JARS))
    for name, value in landing_conf(PLACE, {}).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def new_scene(
    place: Place, spark: SparkSession, ledger_server: LedgerServer, ledger_database: str
) -> Iterator[NewScene]:
    """Makes a topic and a feed that lands it; all gates are open again afterwards."""
    gates = (place.kafka_gate, place.webhdfs_gate, place.namenode_gate, place.ledger_gate)
    for gate in gates:
        gate.open()
    environ = {
        "KAFKA_BOOTSTRAP_SERVERS": place.bootstrap_servers,
        "WEBHDFS_URL": place.webhdfs_url,
        "HDFS_URL": place.hdfs_url,
        "SPARK_MASTER": PLACE.master,
        "LEDGER_DSN": ledger_server.dsn(ledger_database, port=place.ledger_gate.port),
    }

    def build(**layout: Any) -> Scene:
        topic = create_topic(place.bootstrap_servers, **layout)
        return Scene(topic, environ, spark, place=place)

    yield build
    for gate in gates:
        gate.open()


@pytest.fixture
def scene(new_scene: NewScene) -> Scene:
    """A feed of one partition with ten records in its topic."""
    found = new_scene()
    found.produce(10)
    return found
