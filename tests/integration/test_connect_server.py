"""The same functions on a Spark Connect server: the second way stays open.

A client is a process of its own: one process never has both a regular session and a remote one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import Sandbox
from sandbox.connections import SPARK_MASTER
from sandbox.entry.class_archive import class_archive
from sandbox.services.spark_connect import SparkConnect
from tallystick.domain.identities import Owner
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.scrub import (
    BoundedRuns,
    ScrubFile,
    ScrubPlan,
    ScrubResult,
)
from tallystick.spark.cluster_zip import PACKAGE, write_cluster_zip
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.stored.current_files import current_paths
from tests.spark_local.planner import Planner, packed, split
from tests.support.kafka_producers import AWKWARD, messages, produce
from tests.support.kafka_records import records_in
from tests.support.kafka_topics import ANY_TIME_FOR_EVER, LARGE, create_topic
from tests.support.landed_files import landed_in, rows_in
from tests.support.landed_rows import a_row, damage, fingerprint_of, write
from tests.support.sandbox_fixtures import watched_sandbox
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.scrubbed_files import a_file, recorded
from tests.support.story import FEED, Story

LAND_CLIENT = """
import sys
from pyspark.sql import SparkSession
from tallystick.domain.batches.landing import LandingPlan
from tallystick.spark.landing import SESSION_SETTINGS, land
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
before = {name: spark.conf.get(name, None) for name in SESSION_SETTINGS}
land(spark, LandingPlan.from_json(sys.stdin.read()))
assert {name: spark.conf.get(name, None) for name in SESSION_SETTINGS} == before
spark.stop()
"""
SCRUB_CLIENT = """
import sys
from pyspark.sql import SparkSession
from tallystick.domain.rows.scrub import ScrubPlan
from tallystick.spark.scrubbing import SESSION_SETTINGS, scrub, write_result
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
before = {name: spark.conf.get(name, None) for name in SESSION_SETTINGS}
plan = ScrubPlan.from_json(sys.stdin.read())
write_result(spark, plan, scrub(spark, plan))
assert {name: spark.conf.get(name, None) for name in SESSION_SETTINGS} == before
spark.stop()
"""
READ_CLIENT = """
import json, sys
from pyspark.sql import SparkSession
from tallystick.wiring.reading import landed_frame
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
empty = landed_frame(spark, [])
assert empty.count() == 0
found = landed_frame(spark, json.load(sys.stdin))
assert found.schema == empty.schema, (found.schema, empty.schema)
print(json.dumps(sorted([row.partition, row.offset] for row in found.collect())))
spark.stop()
"""


@pytest.fixture(scope="module")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server without settings of ours to lean on, in a folder with a space."""
    with watched_sandbox(tmp_path_factory.mktemp("a folder")) as apart:
        odd = {
            "spark.sql.session.timeZone": "Asia/Tokyo",
            "spark.driver.extraJavaOptions": "",
        }
        server = SparkConnect(apart.home, SPARK_MASTER, settings=odd)
        server.start()
        yield server.address


def test_the_landing_function_runs_on_a_connect_server(
    connect_server: str, kafka: str, hdfs: Any, tmp_path: Path
) -> None:
    planner = Planner(kafka, hdfs.hdfs_url, hdfs.webhdfs_url)
    topic = create_topic(kafka, partitions=3, config=ANY_TIME_FOR_EVER | LARGE)
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
        [sys.executable, "-c", LAND_CLIENT, connect_server],
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


def test_the_scrubbing_function_runs_on_a_connect_server(
    connect_server: str, tmp_path: Path
) -> None:
    rows = [a_row(each, headers=[("a", None), ("b", b"%d" % each)]) for each in range(300)]
    paths = [
        write(tmp_path / "whole.parquet", rows),
        write(tmp_path / "doubled.parquet", [*rows, rows[7]]),
        write(tmp_path / "flipped.parquet", rows),
    ]
    damage(paths[2], "offset")
    files = tuple(a_file(each, (0, 0, 299)) for each in paths)

    result = scrubbed(SCRUB_CLIENT, connect_server, files, tmp_path)

    assert [len(each.slices) for each in result.files] == [1, 1, 0]
    sound, doubled = (each.slices[0] for each in result.files[:2])
    assert sound.fingerprint == fingerprint_of(rows)
    assert sound.has_its_offsets
    assert doubled.doubled == BoundedRuns.of(OffsetRuns.of([(7, 8)]))
    assert result.files[2].failure


def test_large_files_on_record_are_read_once_on_a_connect_server(
    connect_server: str, tmp_path: Path
) -> None:
    only_that_way = """
from tallystick.spark import slice_sums
slice_sums._LARGE_ROWS = 1
del slice_sums._taken_by_slice, slice_sums._taken_as_runs
"""
    rows = {name: [a_row(each, value=name.encode()) for each in range(100)] for name in "ab"}
    files = tuple(
        recorded(a_file(write(tmp_path / f"{name}.parquet", rows[name]), (0, 0, 99)), rows[name])
        for name in rows
    )

    result = scrubbed(only_that_way + SCRUB_CLIENT, connect_server, files, tmp_path)

    assert [each.failure for each in result.files] == [None, None]
    assert all(each.slices[0].has_its_offsets for each in result.files)


def scrubbed(
    client: str, server: str, files: tuple[ScrubFile, ...], directory: Path
) -> ScrubResult:
    """What a client in a process of its own has written."""
    plan = ScrubPlan("s", files, (directory / "result").as_uri(), None)
    archive = directory / "tallystick.zip"
    write_cluster_zip(archive)  # and the function needs nothing but what travels
    done = subprocess.run(
        [sys.executable, "-c", client, server],
        input=plan.to_json(),
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(archive)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [written] = [each for each in (directory / "result").iterdir() if each.name[0] != "."]
    return ScrubResult.from_json(written.read_text())


def test_a_feed_is_read_on_a_connect_server(
    connect_server: str, ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    broker = ScriptedBroker("orders")
    broker.logs[0].append(Kind.RECORD, 10)
    broker.logs[1].append(Kind.RECORD, 7)
    services = Story(ledger_databases(), tmp_path / "files", broker).services()
    land_feed(services, None, Owner("test"))
    uris = [services.store.uri(each) for each in current_paths(services.ledger, FEED)]

    done = subprocess.run(
        [sys.executable, "-c", READ_CLIENT, connect_server],
        input=json.dumps(uris),
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        *([0, offset] for offset in range(10)),
        *([1, offset] for offset in range(7)),
    ]


def test_a_server_maps_the_archive_of_classes(sandbox: Sandbox, spark_connect: str) -> None:
    archive = class_archive()
    assert archive is not None
    assert archive.exists()
    programs = [Path("/proc", str(each)) for each in sandbox.spark_connect.members()]
    [java] = [each for each in programs if (each / "exe").resolve().name == "java"]
    assert str(archive) in (java / "maps").read_text(), spark_connect
