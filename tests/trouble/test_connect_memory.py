"""What a Spark Connect server keeps of a landing that is over: nothing of Kafka's records."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from sandbox.entry.system import ensure_java
from sandbox.service import Service
from tests.support.connect_servers import server_of_its_own
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import create_topic, wait_until
from tests.support.whole_way import Way, environ_of

RECORDS = ("kafka.clients.consumer.ConsumerRecord", "kafka.clients.consumer.KafkaConsumer")

NewWay = Callable[..., Way]


@pytest.fixture
def new_way(kafka: str, hdfs: Any, ledger_dsn: str) -> NewWay:
    """Makes a topic, and a feed that the server at this address lands."""

    def build(address: str, **layout: Any) -> Way:
        environ = environ_of(kafka, hdfs, ledger_dsn, address)
        return Way(create_topic(kafka, **layout), environ)

    return build


def test_a_landing_is_not_kept_in_memory_when_it_is_over(
    new_way: NewWay, kafka: str, tmp_path: Path
) -> None:
    with server_of_its_own(tmp_path) as server:
        way = new_way(server.address, partitions=8)

        def land() -> None:
            for each in range(8):
                produce(kafka, way.topic, messages(50), partition=each)
            way.landed()

        land()  # what is there for good is there then
        wait_until(lambda: not count_of(server, *RECORDS), "the first is forgotten")
        files = java_of(server).num_fds()
        for _ in range(3):
            land()

        wait_until(lambda: not count_of(server, *RECORDS), "all are forgotten")
        wait_until(lambda: java_of(server).num_fds() <= files, "no file is left open")


def count_of(server: Service, *classes: str) -> int:
    """How many objects of these classes it has in memory, after a full garbage collection."""
    jcmd = ensure_java() / "bin" / "jcmd"
    asked = [jcmd, str(java_of(server).pid), "GC.class_histogram"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^ *\d+: +(\d+) +\d+ +(\S+)", found, re.MULTILINE)
    assert rows
    return sum(int(count) for count, name in rows if name.endswith(classes))


def java_of(server: Service) -> psutil.Process:
    return next(each for each in map(psutil.Process, server.members()) if each.name() == "java")
