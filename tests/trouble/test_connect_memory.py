"""What a landing takes and keeps of memory: with large records too, a heap of 1 GiB is enough.

Of a landing that is over a Spark Connect server keeps its compiled code, and no record of Kafka's.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sandbox.service import Service
from tests.support.connect_servers import server_at, server_of_its_own
from tests.support.jvm_answers import jvm_answer, jvm_of
from tests.support.kafka_producers import Message, messages, produce
from tests.support.kafka_topics import create_topic, wait_until
from tests.support.whole_way import Way, environ_of

RECORDS = ("kafka.clients.consumer.ConsumerRecord", "kafka.clients.consumer.KafkaConsumer")

# Lands a feed in a process of its own; the most memory that it took is on its last line.
LANDING = """
import json, pathlib, re, sys
from tests.support.whole_way import Way
way = Way(**json.loads(sys.argv[1]))
print(way.landed().batches)
print(re.search("VmHWM:\\\\s+(\\\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
"""
LONGEST_SECONDS = 300
# The broker takes batches of this size, and the producer makes them.
LARGE = {"max.message.bytes": "200000000"}
LARGE_BATCHES = {
    "message.max.bytes": 200_000_000,
    "batch.size": 100_000_000,
    "linger.ms": 2_000,
    "queue.buffering.max.kbytes": 2_000_000,
}
ONE_RECORD = {"batch.num.messages": 1}

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
        files = jvm_of(server).num_fds()
        for _ in range(3):
            land()

        wait_until(lambda: not count_of(server, *RECORDS), "all are forgotten")
        wait_until(lambda: jvm_of(server).num_fds() <= files, "no file is left open")


def test_records_of_8_megabytes_are_landed_at_the_first_try(
    new_way: NewWay, kafka: str, tmp_path: Path
) -> None:
    with server_of_its_own(tmp_path) as server:
        way = new_way(server.address, partitions=2, config=LARGE)
        for each in range(2):
            sent = (Message(os.urandom(8_000_000)) for _ in range(30))
            produce(kafka, way.topic, sent, partition=each, config=LARGE_BATCHES | ONE_RECORD)

        assert megabytes_of_landing(way) < 1_000

        assert server.is_running


def test_batches_that_unpack_to_more_than_the_heap_are_landed_at_the_first_try(
    new_way: NewWay, kafka: str, tmp_path: Path
) -> None:
    with server_of_its_own(tmp_path) as server:
        way = new_way(server.address, config=LARGE)
        sent = [Message(b"a" * 500_000)] * 2_400
        produce(kafka, way.topic, sent, config=LARGE_BATCHES | {"compression.type": "zstd"})

        assert megabytes_of_landing(way) < 1_000

        assert server.is_running


def test_a_session_runs_the_code_that_was_compiled_for_an_earlier_one(
    new_way: NewWay, kafka: str, tmp_path: Path
) -> None:
    with server_of_its_own(tmp_path) as server:
        way = new_way(server.address)
        compiled = []
        for _ in range(3):
            produce(kafka, way.topic, messages(5))
            way.landed()
            compiled.append(jvm_answer(server, "VM.class_hierarchy").count(".GeneratedClass$"))

    assert compiled[0] > 0
    assert compiled == [compiled[0]] * 3


def test_a_server_starts_where_the_variables_of_a_client_are_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SPARK_CONNECT_MODE", "SPARK_CONNECT_MODE_ENABLED"):
        monkeypatch.setenv(name, "1")
    with (
        server_of_its_own(tmp_path) as server,
        server_at(server.address).session(str(uuid4()), {}, reads_kafka=True) as spark,
    ):
        assert spark.conf.get("spark.sql.artifact.isolation.enabled") == "false"


def megabytes_of_landing(way: Way) -> int:
    """The most memory that the landing's own process took; it had no error at the first try."""
    told = {"topic": way.topic, "environ": dict(way.environ), "name": way.name}
    done = subprocess.run(
        [sys.executable, "-c", LANDING, json.dumps(told)],
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1]) // 1024


def count_of(server: Service, *classes: str) -> int:
    """How many objects of these classes it has in memory, after a full garbage collection."""
    found = jvm_answer(server, "GC.class_histogram")
    rows = re.findall(r"^ *\d+: +(\d+) +\d+ +(\S+)", found, re.MULTILINE)
    assert rows
    return sum(int(count) for count, name in rows if name.endswith(classes))
