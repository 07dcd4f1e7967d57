"""One cluster of two brokers, one HDFS and one warm Spark session for the detector's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import Sandbox
from sandbox.services.kafka import KafkaCluster
from tests.spark_local.conftest import PYSPARK_SOCKETS, spark

__all__ = ["cluster", "spark"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "detector" in item.nodeid:
            item.add_marker(PYSPARK_SOCKETS)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A controller and two brokers that may be killed."""
    cluster = Sandbox.kafka_cluster(tmp_path_factory.mktemp("cluster"), brokers=2)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
