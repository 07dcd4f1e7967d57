"""One cluster of two brokers, one HDFS and one warm Spark session for the detector's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import Sandbox
from sandbox.services.kafka import KafkaCluster
from tests.spark_local.conftest import PYSPARK_SOCKETS, spark
from tests.support.clearing_up import SANDBOX, watched

__all__ = ["cluster", "spark"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "detector" in item.nodeid:
            item.add_marker(PYSPARK_SOCKETS)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """A controller and two brokers that may be killed."""
    directory = tmp_path_factory.mktemp("cluster")
    cluster = Sandbox.kafka_cluster(directory, brokers=2)
    with watched(SANDBOX, directory):
        try:
            cluster.start()
            yield cluster
        finally:
            cluster.stop()
