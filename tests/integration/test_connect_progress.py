"""How far a landing and a scrub have come is told by the Spark Connect server that does them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from sandbox.ports import Ports
from sandbox.service import Home
from sandbox.services.spark_connect import SparkConnect
from sandbox.state import State
from tallystick.domain.finding_codes import Level
from tallystick.ports.progress import Progress
from tallystick.spark.connect_runner import ConnectRunner
from tallystick.spark.connect_server import ConnectServer
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import create_topic
from tests.support.whole_way import Way, environ_of

PARTITIONS, RECORDS = 6, 20_000
OFFSETS = PARTITIONS * RECORDS


@pytest.fixture
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectRunner]:
    """Of a server that does one task after the other, and says often how far it is."""
    place = tmp_path_factory.mktemp("server")
    home = Home(place, state := State(place), Ports(state, {}))
    often = {"spark.connect.progress.reportInterval": "50ms"}
    server = SparkConnect(home, "local[1]", settings=often)
    try:
        server.start()
        url = server.address
        found = ConnectServer(url, lambda sid: f"{url}/;session_id={sid};user_id=tallystick")
        yield ConnectRunner(found, {}, timedelta(minutes=5))
    finally:
        server.kill()


def rises(counts: list[int]) -> bool:
    return all(before <= after for before, after in pairwise(counts))


def test_offsets_and_bytes_rise_while_a_landing_and_a_scrub_go_on(
    kafka: str, hdfs: Any, ledger_dsn: str, runner: ConnectRunner
) -> None:
    environ = environ_of(kafka, hdfs, ledger_dsn, runner.server.master)
    way = Way(create_topic(kafka, partitions=PARTITIONS), environ)
    for partition in range(PARTITIONS):
        produce(kafka, way.topic, messages(RECORDS), partition=partition)
    small_files = {"root": way.root, "replication": 1, "target_file_bytes": 4 << 20}
    feed, told = way.feed(target=small_files), list[Progress]()

    way.landed(runner, feed=feed, progress=told.append)
    landed = [each for each in told if each.is_estimate]
    with way.services(runner, feed, progress=told.append) as services:
        reconcile(services, Level.L3)
    scrubbed = [each for each in told if each.unit == "bytes"]

    offsets = [each.done for each in landed]
    assert rises(offsets)
    assert len({each for each in offsets if 0 < each < OFFSETS}) > 1
    assert landed[-1] == Progress(
        "land", OFFSETS, OFFSETS, "offsets", is_estimate=True, note="6 of 6 files"
    )
    assert rises([each.done for each in scrubbed])
    assert scrubbed[-1].total
    assert 0 < scrubbed[-1].done <= 2 * scrubbed[-1].total
