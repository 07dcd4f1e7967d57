"""Services of a bench's own, a topic full of records, and feeds that land it."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from sandbox import Sandbox
from sandbox.connections import airflow_connections
from sandbox.entry.class_archive import spark_variables
from sandbox.entry.system import ensure_java
from tallystick.domain.identities import Owner
from tallystick.settings.connections import connection_in
from tallystick.settings.feed import Feed
from tallystick.wiring.adapters import open_services
from tallystick.workflows.landing.run import land_feed

TOPIC = "bench"
MOST_NEW_PARTITIONS = 5_000
"""Of one request: a controller takes fewer than ten thousand."""


@contextmanager
def services(directory: Path, only: Sequence[str]) -> Iterator[Sandbox]:
    """The named groups of a sandbox in this directory, for as long as the block runs."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ["JAVA_HOME"] = str(ensure_java())
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # So that the services end with a bench that is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sandbox = Sandbox(directory)
    try:
        sandbox.up(only=only, report=print)
        os.environ.update(spark_variables(os.environ))
        yield sandbox
    finally:
        sandbox.down(purge=True)


def variables(sandbox: Sandbox) -> dict[str, str]:
    """The addresses of its services, and all connections."""
    return {**sandbox.env(), **airflow_connections(sandbox)}


def fill(servers: str, records: int, size: int, partitions: int) -> dict[int, int]:
    """One past the last offset of each partition of a new topic, once all records are written."""
    make_topic(servers, TOPIC, partitions)
    return produce(servers, records, size, partitions)


def make_topic(servers: str, topic: str, partitions: int) -> None:
    """A new topic without records."""
    client = AdminClient({"bootstrap.servers": servers})
    made = min(partitions, MOST_NEW_PARTITIONS)
    client.create_topics([NewTopic(topic, made, 1)])[topic].result(60)
    while made < partitions:
        made = min(partitions, made + MOST_NEW_PARTITIONS)
        client.create_partitions([NewPartitions(topic, made)])[topic].result(60)
    # A broker tells of new partitions a moment after the controller has made them.
    while len(client.list_topics(topic, timeout=60).topics[topic].partitions) < partitions:
        time.sleep(0.2)


def produce(
    servers: str, records: int, size: int, partitions: int, topic: str = TOPIC
) -> dict[int, int]:
    """How many records each partition got, once all are written. Seeded."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": "lz4",
            "linger.ms": 50,
            "queue.buffering.max.messages": 500_000,
        }
    )
    chance = random.Random(7)
    words = [f"{chance.getrandbits(40):010x}" for _ in range(5_000)]
    until = dict.fromkeys(range(partitions), 0)
    for number in range(records):
        text = f'{{"id":{number},"customer":"{chance.choice(words)}","note":"'
        while len(text) < size - 2:
            text += f"{chance.choice(words)} "
        partition = number % partitions
        until[partition] += 1
        while True:
            try:
                producer.produce(topic, f'{text[: size - 2]}"}}'.encode(), partition=partition)
                break
            except BufferError:
                producer.poll(0.5)
    if producer.flush(120):
        raise SystemExit("the topic could not be filled")
    print(f"{records:,} records of {size} bytes in {partitions} partitions")
    return until


def feed_document(name: str, spark_connection: str, topic: str = TOPIC) -> dict[str, object]:
    """A feed of the topic, as its file says it."""
    return {
        "feed": name,
        "source": {"topic": topic},
        "schedule": {"cron": "0 * * * *", "start_date": datetime(2026, 11, 1, tzinfo=UTC)},
        "target": {"root": "/bench", "replication": 1},
        "spark": {"connection": spark_connection},
    }


def feed_of(name: str, spark_connection: str = "spark_submit") -> Feed:
    """A feed of the topic."""
    return Feed.model_validate(feed_document(name, spark_connection))


def land(
    name: str, environ: Mapping[str, str], records: int, spark_connection: str = "spark_submit"
) -> None:
    """From plan to published, by a feed of its own, so that it takes everything.

    Ends the bench unless all records were committed.
    """
    feed = feed_of(name, spark_connection)
    with open_services(feed, lambda conn_id: connection_in(environ, conn_id)) as opened:
        report = land_feed(opened, None, Owner("bench"))
    committed = sum(each.commit.record_count for each in report.batches if each.commit)
    if report.errors or committed != records:
        raise SystemExit(f"{committed} of {records} records: {report.errors}")
