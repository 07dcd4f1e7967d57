"""Trouble on a Spark Connect server: others work beside us, it dies, fills up, or is not as needed.

Whatever happens, every record is landed once in the end, and no record or file is blamed for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession

from sandbox import Sandbox
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.identities import AttemptId, Owner
from tallystick.domain.verdicts import Verdict
from tallystick.errors import ConfigurationError, SparkUnavailable
from tallystick.spark.connect_runner import ConnectRunner
from tallystick.spark.connect_server import ConnectServer
from tallystick.workflows.committing.publishing import publish
from tallystick.workflows.committing.verification import verify_and_commit
from tallystick.workflows.landing.land import land_batch
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.connect_servers import LONG, ColdServer, Struck, server_at, server_of_its_own
from tests.support.kafka_producers import Message, messages, produce
from tests.support.kafka_topics import create_topic, wait_until
from tests.support.whole_way import Way, environ_of

NewWay = Callable[..., Way]
# It takes seconds to write them.
LARGE = [Message(os.urandom(2000)) for _ in range(60_000)]
# Eats the server's heap until there is none left.
HOG = "SELECT size(collect_list(repeat(cast(id AS string), 20000))) FROM range(0, 10000000, 1, 2)"


@pytest.fixture
def server(spark_connect: str, sandbox: Sandbox) -> ConnectServer:
    sandbox.up(only=["spark-connect"])  # whoever was here before may have killed it
    return server_at(spark_connect)


@pytest.fixture
def new_way(kafka: str, hdfs: Any, ledger_dsn: str, server: ConnectServer) -> NewWay:
    """Makes a topic with records in each partition, and a feed that the server lands."""
    environ = environ_of(kafka, hdfs, ledger_dsn, server.master)

    def build(partitions: int = 1, count: int = 500, **layout: Any) -> Way:
        way = Way(create_topic(kafka, partitions=partitions, **layout), environ)
        for each in range(partitions):
            produce(kafka, way.topic, messages(count), partition=each)
        return way

    return build


def test_two_feeds_land_at_once_on_one_server(new_way: NewWay, server: ConnectServer) -> None:
    ways, both = [new_way(count=2000), new_way(count=1000)], Barrier(2, timeout=60)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda each: each.landed(Struck(server, both.wait).runner()), ways))

    assert ways[0].rows() == ways[0].produced({0: (0, 2000)})
    assert ways[1].rows() == ways[1].produced({0: (0, 1000)})


def test_two_batches_of_a_feed_land_at_once_on_one_server(
    new_way: NewWay, server: ConnectServer
) -> None:
    way, both = new_way(partitions=2), Barrier(2, timeout=60)
    feed = way.feed(plan={"max_partitions_per_batch": 1})
    with way.services(feed=feed) as services:
        batches = plan_feed(services, None, Owner("plans")).all_batches

    def carried_out(batch_id: Any) -> None:
        with way.services(Struck(server, both.wait).runner(), feed) as services:
            attempt = land_batch(services, batch_id, AttemptId(uuid4().hex), Owner("plans"))
            assert attempt
            verify_and_commit(services, attempt)
            publish(services, batch_id)

    assert len(batches) == 2
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(carried_out, [each.batch_id for each in batches]))

    assert way.rows() == way.produced({0: (0, 500), 1: (0, 500)})


def test_a_scrub_reads_beside_a_landing(new_way: NewWay, server: ConnectServer) -> None:
    read, lands, both = new_way(), new_way(), Barrier(2, timeout=60)
    read.landed()

    with ThreadPoolExecutor(2) as pool:
        scrub = pool.submit(reconciled, read, Struck(server, both.wait).runner())
        landing = pool.submit(lands.landed, Struck(server, both.wait).runner())

    assert scrub.result().verdict is Verdict.PROVEN_OK
    assert landing.result()
    assert lands.rows() == lands.produced({0: (0, 500)})


def reconciled(way: Way, runner: ConnectRunner) -> Any:
    with way.services(runner) as services:
        return reconcile(services, Level.L3)


def test_a_server_that_is_killed_while_it_writes_costs_one_try(
    new_way: NewWay, server: ConnectServer, sandbox: Sandbox, kafka: str
) -> None:
    way = new_way(count=0)
    produce(kafka, way.topic, LARGE)
    with ThreadPoolExecutor(1) as pool:
        landing = pool.submit(way.land, ConnectRunner(server, {}, LONG))
        wait_until(lambda: bool(writing(way)) or landing.done(), "it writes", seconds=90)
        sandbox.spark_connect.kill()
        [error] = landing.result().errors

    assert isinstance(error, SparkUnavailable)
    assert not way.rows()
    sandbox.up(only=["spark-connect"])
    way.landed()
    assert way.rows() == way.produced({0: (0, len(LARGE))})


def writing(way: Way) -> set[str]:
    """The attempts that Spark is writing for."""
    batches = [f"{way.root}/_staging/{each}" for each in way.staged() if each[0] != "_"]
    attempts = [f"{batch}/{each}" for batch in batches for each in way._names(batch)]
    return {each for each in attempts if "_temporary" in way._names(f"{each}/data")}


def test_a_server_that_is_started_anew_in_a_landing_has_lost_the_session(
    new_way: NewWay, server: ConnectServer, sandbox: Sandbox
) -> None:
    way = new_way(partitions=2)

    def restart() -> None:
        sandbox.spark_connect.kill()
        sandbox.up(only=["spark-connect"])

    done = way.land(Struck(server, restart).runner())
    again = way.landed()

    [error] = done.errors
    assert isinstance(error, SparkUnavailable)
    [batch] = again.plan.all_batches
    assert batch.batch_id == done.plan.all_batches[0].batch_id
    assert way.rows() == way.produced({0: (0, 500), 1: (0, 500)})


def test_no_file_is_blamed_for_a_server_that_is_killed_in_a_scrub(
    new_way: NewWay, server: ConnectServer, sandbox: Sandbox
) -> None:
    way = new_way()
    way.landed()

    report = reconciled(way, Struck(server, sandbox.spark_connect.kill).runner())

    assert report.verdict is Verdict.UNKNOWN
    assert {each.code for each in report.findings} == {FindingCode.COULD_NOT_TELL}
    assert any("can't be used now" in str(each) for each in report.findings)
    sandbox.up(only=["spark-connect"])
    assert reconciled(way, ConnectRunner(server, {}, LONG)).verdict is Verdict.PROVEN_OK


def test_a_server_whose_memory_somebody_else_fills_blames_no_record(
    new_way: NewWay, server: ConnectServer, sandbox: Sandbox
) -> None:
    way = new_way()

    def fill() -> None:
        with suppress(Exception), server.session(str(uuid4()), {}, reads_kafka=False) as other:
            other.sql(HOG).collect()
        wait_until(lambda: not sandbox.spark_connect.is_running, "it is full", seconds=120)

    [error] = way.land(Struck(server, fill).runner()).errors
    sandbox.up(only=["spark-connect"])
    way.landed()

    assert isinstance(error, SparkUnavailable)
    assert way.rows() == way.produced({0: (0, 500)})


def test_what_a_server_lacks_costs_the_batch_nothing(
    new_way: NewWay, monkeypatch: pytest.MonkeyPatch
) -> None:
    way = new_way(partitions=2)
    monkeypatch.setattr("pyspark.__version__", "4.0.9")
    for _ in range(3):
        [error] = way.land().errors
        assert isinstance(error, ConfigurationError)
        assert "version of Spark is '4.1" in str(error)
    monkeypatch.undo()

    report = way.landed()

    [batch] = report.batches  # it was not halved
    assert batch.commit
    assert way.rows() == way.produced({0: (0, 500), 1: (0, 500)})


def test_a_file_system_that_the_server_does_not_know_is_a_setting(new_way: NewWay) -> None:
    way = new_way()
    hdfs = way.environ["WEBHDFS_URL"].replace("http://", "webhdfs://")
    elsewhere = f"{hdfs}?fs=hdfs%3A%2F%2Fnowhere.invalid%3A8020"
    lost = Way(way.topic, {**way.environ, "AIRFLOW_CONN_WEBHDFS_DEFAULT": elsewhere})

    [error] = lost.land().errors

    assert isinstance(error, ConfigurationError)
    assert "nowhere.invalid" in str(error)
    with lost.services() as services:
        [batch] = services.ledger.batches(services.feed_name)
    assert not batch.attempts[0].application_id


class WithoutConnector(ColdServer):
    """Has no --jars."""

    def command(self) -> list[str]:
        argv = list(super().command())
        place = argv.index("--jars")
        return argv[:place] + argv[place + 2 :]


def test_a_server_without_the_connector_is_told_before_anything_is_read(
    new_way: NewWay, tmp_path: Path
) -> None:
    way = new_way()
    with server_of_its_own(tmp_path, WithoutConnector) as own:
        [error] = way.land(ConnectRunner(server_at(own.address), {}, LONG)).errors

    assert isinstance(error, ConfigurationError)
    assert "spark-sql-kafka-0-10" in str(error)


# What an administrator may have set for others' work, each far from its default or from ours.
ODD = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "Asia/Kathmandu",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.files.maxRecordsPerFile": "7",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.sources.default": "orc",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.parquet.compression.codec": "gzip",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "EXCEPTION",
    "spark.sql.parquet.writeLegacyFormat": "true",
    "spark.sql.parquet.enableVectorizedReader": "false",
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.columnarReaderBatchSize": "3",
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "true",
    "spark.hadoop.parquet.block.size": "4096",
}


def test_odd_settings_of_a_server_all_at_once_change_no_row(
    new_way: NewWay, tmp_path: Path
) -> None:
    way = new_way(partitions=2)
    with server_of_its_own(tmp_path, **ODD) as odd:
        runner = ConnectRunner(server_at(odd.address), {}, LONG)
        assert not way.land(runner).errors
        found = reconciled(way, runner)

    assert found.verdict is Verdict.PROVEN_OK
    assert way.rows() == way.produced({0: (0, 500), 1: (0, 500)})


def test_a_session_that_somebody_changes_in_the_meantime_is_not_trusted(
    new_way: NewWay, server: ConnectServer
) -> None:
    way = new_way()

    done = way.land(Meddler(server).runner())

    [error] = done.errors
    assert isinstance(error, SparkUnavailable)
    assert "spark.sql.session.timeZone" in str(error)
    way.landed()
    assert way.rows() == way.produced({0: (0, 500)})


class Meddler(Struck):
    """Somebody opens our session by its id, and sets the time zone as soon as we have set ours."""

    def __init__(self, server: ConnectServer) -> None:
        super().__init__(server, lambda: None)

    @contextmanager
    def session(self, session_id: str, *args: Any, **kwargs: Any) -> Iterator[SparkSession]:
        with self.server.session(session_id, *args, **kwargs) as spark:
            yield Reading(spark, self.server._opened(session_id, 1).spark)  # type: ignore[misc]


@dataclass
class Reading:
    """The session; when it reads Kafka, the other one speaks."""

    spark: SparkSession
    other: SparkSession

    def __getattr__(self, name: str) -> Any:
        return getattr(self.spark, name)

    @property
    def read(self) -> Any:
        if self.spark.conf.get("spark.sql.parquet.outputTimestampType") == "TIMESTAMP_MICROS":
            self.other.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        return self.spark.read
