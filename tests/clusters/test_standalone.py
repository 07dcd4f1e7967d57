"""Landings on a standalone cluster: whatever dies in mid-write, and whoever listens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from sandbox import Sandbox
from sandbox.clusters.standalone import Standalone
from sandbox.ports import answers
from tallystick.spark.cluster_zip import ARCHIVE_NAME
from tallystick.spark.kafka_access import SECRETS_FILE
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import create_topic, wait_until
from tests.support.sasl_kafka import SaslKafka
from tests.support.spark_clusters import (
    BOUND_SECONDS,
    HARD_TO_PACK,
    STANDALONE_CONF,
    ClusterPlace,
    java_of,
    killed,
    slow_messages,
)
from tests.support.whole_way import Way
from tests.trouble.command import Command

CONNECTION = "spark_standalone"
EXECUTOR = "CoarseGrainedExecutorBackend"
pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def place(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterPlace]:
    with ClusterPlace.up(sandbox, tmp_path_factory.mktemp("feeds"), Standalone) as found:
        yield found


@pytest.fixture
def cluster(place: ClusterPlace) -> Standalone:
    """The cluster, with all of it up."""
    found = place.sandbox.clusters["standalone"]
    assert isinstance(found, Standalone)
    found.start()
    return found


def executors(cluster: Standalone) -> list[psutil.Process]:
    return java_of(map(psutil.Process, cluster.worker.members()), EXECUTOR)


def test_a_landing_is_proven(place: ClusterPlace, cluster: Standalone) -> None:
    feed = place.way(CONNECTION, STANDALONE_CONF, messages(3_000))
    feed.lands()
    feed.is_whole()


def test_an_executor_that_dies_in_mid_write_loses_and_doubles_nothing(
    place: ClusterPlace, cluster: Standalone
) -> None:
    feed = place.way(CONNECTION, STANDALONE_CONF, slow_messages(), target=HARD_TO_PACK)
    command = feed.command("land")
    feed.until_it_writes()
    killed(partial(executors, cluster))
    assert command.ended().code == 0, command.err[-4000:]
    feed.is_whole()


def test_a_worker_that_dies_in_mid_write_loses_and_doubles_nothing(
    place: ClusterPlace, cluster: Standalone
) -> None:
    feed = place.way(CONNECTION, STANDALONE_CONF, slow_messages(), target=HARD_TO_PACK)
    command = feed.command("land")
    feed.until_it_writes()
    cluster.worker.kill()
    assert command.is_running
    cluster.start()
    assert command.ended().code == 0, command.err[-4000:]
    feed.is_whole()


def test_a_killed_command_leaves_no_executor_and_the_next_one_lands_once(
    place: ClusterPlace, cluster: Standalone
) -> None:
    feed = place.way(CONNECTION, STANDALONE_CONF, slow_messages(), target=HARD_TO_PACK)
    command = feed.command("land")
    feed.until_it_writes()
    command.kill()
    wait_until(lambda: not executors(cluster), "no executor is left", seconds=BOUND_SECONDS)
    feed.lands_after_a_kill()
    feed.is_whole()


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[SaslKafka]:
    """A Kafka that lets nobody in without a password."""
    node = SaslKafka(tmp_path / "kafka")
    try:
        node.start()
        yield node
    finally:
        node.stop()


STRANGER = """
import sys
from pyspark import SparkFiles
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").getOrCreate()
for name in sys.argv[2:]:
    try:
        spark.sparkContext.addFile(f"spark://127.0.0.1:{sys.argv[1]}/files/{name}")
        print("got", name, len(open(SparkFiles.get(name), "rb").read()), flush=True)
    except Exception as error:
        print("refused", name, type(error).__name__, flush=True)
"""


def seen_by_a_stranger(port: int, *names: str) -> dict[str, str]:
    """What anybody gets who reaches a driver's port, without a word of who he is."""
    told = subprocess.run(
        [sys.executable, "-c", STRANGER, str(port), *names],
        env=os.environ | {"SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=BOUND_SECONDS,
        check=True,
    ).stdout
    lines = [line.split() for line in told.splitlines() if line.startswith(("got", "refused"))]
    return {name: outcome for outcome, name, *_ in lines}


def test_a_stranger_at_the_drivers_port_gets_our_code_and_no_secret(
    place: ClusterPlace, cluster: Standalone, guarded: SaslKafka, tmp_path: Path
) -> None:
    topic = create_topic(guarded.address)
    produce(guarded.address, topic, messages(10))
    kafka = json.dumps({"conn_type": "kafka", "extra": guarded.properties})
    spark = json.loads(place.environ[f"AIRFLOW_CONN_{CONNECTION.upper()}"])
    environ = {**place.environ, "AIRFLOW_CONN_KAFKA_DEFAULT": kafka}
    way = Way(topic, environ)
    ports = place.sandbox.home.ports
    ports.claim("stranger")
    ports.release("stranger")
    driver_port = ports["stranger"]
    conf = {**STANDALONE_CONF, "spark.driver.port": str(driver_port)}
    place.folder.write(way.feed(spark={"connection": CONNECTION, "conf": conf}))

    refused = Command(place.folder, environ, "land", way.name).ended()
    assert refused.code == 2
    assert f"connection {CONNECTION}: with master spark://127.0.0.1:" in refused.err
    assert "tallystick kafka-secrets FEED" in refused.err

    file = tmp_path / "kafka-secrets.properties"
    file.touch(mode=0o600)
    printed = Command(place.folder, environ, "kafka-secrets", way.name).ended()
    file.write_text(printed.out, encoding="utf-8")
    spark["extra"]["kafka-secrets"] = str(file)
    environ[f"AIRFLOW_CONN_{CONNECTION.upper()}"] = json.dumps(spark)

    worker = psutil.Process(cluster.worker.pid)
    worker.send_signal(signal.SIGSTOP)  # no executor starts, so the driver waits with its port open
    try:
        command = Command(place.folder, environ, "land", way.name)
        wait_until(partial(answers, driver_port), "the driver listens", seconds=BOUND_SECONDS)
        seen = seen_by_a_stranger(driver_port, ARCHIVE_NAME, SECRETS_FILE, file.name)
    finally:
        worker.send_signal(signal.SIGCONT)
    assert seen == {ARCHIVE_NAME: "got", SECRETS_FILE: "refused", file.name: "refused"}
    assert command.ended().code == 0, command.err[-4000:]
    assert len(way.rows()) == 10
