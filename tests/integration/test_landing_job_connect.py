"""The same landing function on a Spark Connect server: the second way stays open."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tallystick.spark.cluster_zip import write_cluster_zip
from tests.spark_local.planner import Planner, packed, split
from tests.support.kafka_producers import AWKWARD, messages, produce
from tests.support.kafka_records import records_in
from tests.support.kafka_topics import create_topic
from tests.support.landed_files import landed_in, rows_in

pytestmark = pytest.mark.integration
FAR = {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1"}

# A process of its own: one process never has both a regular session and a remote one.
CLIENT = """
import sys
from pyspark.sql import SparkSession
from tallystick.domain.landing import LandingPlan
from tallystick.spark.landing import SESSION_SETTINGS, land
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
before = {name: spark.conf.get(name, None) for name in SESSION_SETTINGS}
land(spark, LandingPlan.from_json(sys.stdin.read()))
assert {name: spark.conf.get(name, None) for name in SESSION_SETTINGS} == before
spark.stop()
"""


def test_the_landing_function_runs_on_a_connect_server(
    connect_server: str, kafka: str, hdfs: Any, tmp_path: Path
) -> None:
    planner = Planner(kafka, hdfs.hdfs_url, hdfs.webhdfs_url)
    topic = create_topic(kafka, partitions=3, config=FAR | {"max.message.bytes": "2000000"})
    produce(kafka, topic, AWKWARD)
    produce(kafka, topic, messages(10), partition=1)
    produce(kafka, topic, messages(1000), partition=2)
    small = {0: (0, len(AWKWARD)), 1: (3, 10)}
    plan = planner.plan(
        topic, [packed(topic, small), split(topic, {2: (0, 1000)}, 400)], replication=2
    )
    archive = tmp_path / "tallystick.zip"
    write_cluster_zip(archive)

    done = subprocess.run(
        [sys.executable, "-c", CLIENT, connect_server],
        input=plan.to_json(),
        env=os.environ | {"PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert rows_in(planner.webhdfs_url, planner.directory(plan)) == records_in(
        kafka, topic, small | {2: (0, 1000)}
    )
    files = landed_in(planner.webhdfs_url, planner.directory(plan))
    assert len(files) == 4
    assert {each.status["replication"] for each in files} == {2}
    assert all(each.name.startswith(plan.file_prefix) for each in files)
