"""One Spark session for all tests of this directory, with the settings of a real landing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tallystick.spark import slice_sums
from tallystick.spark.command import landing_conf
from tests.spark_local.planner import Planner
from tests.support.spark_place import JARS, PLACE

# PySpark leaves the sockets of collected results to the garbage collector.
PYSPARK_SOCKETS = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(PYSPARK_SOCKETS)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A warm session, as spark-submit would make it, on a cluster with odd defaults."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    odd = {
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.parquet.writeLegacyFormat": "true",
        "spark.sql.files.maxRecordsPerFile": "7",
        "spark.sql.ansi.enabled": "true",
    }
    builder = SparkSession.builder.master(PLACE.master).config("spark.jars", ",".join(JARS))
    for name, value in (odd | landing_conf(PLACE, {})).items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def planner(kafka: str, hdfs: Any) -> Planner:
    return Planner(kafka, hdfs.hdfs_url, hdfs.webhdfs_url)


@pytest.fixture(params=["by file", "by slice"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are summed up one by one, as large ones are, and then all together."""
    monkeypatch.setattr(slice_sums, "_LARGE_ROWS", 1 if request.param == "by file" else 1_000_000)
