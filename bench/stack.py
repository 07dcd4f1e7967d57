"""Services of a bench's own, a topic full of records, and feeds that land it."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.measured import ROOT
from sandbox import Sandbox
from sandbox.connections import airflow_connections
from sandbox.entry.system import ensure_java
from tallystick.domain.identities import Owner
from tallystick.settings.connections import connection_in
from tallystick.settings.feed import Feed
from tallystick.wiring import open_services
from tallystick.workflows.landing.run import land_feed

TOPIC = "bench"


@contextmanager
def services(directory: Path, only: Sequence[str]) -> Iterator[Sandbox]:
    """The named groups of a sandbox in this directory, for as long as the block runs."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    os.environ["JAVA_HOME"] = str(ensure_java())
    os.environ.setdefault("SPARK_CONF_DIR", str(ROOT / "sandbox" / "spark"))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    # So that the services end with a bench that is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sandbox = Sandbox(directory)
    try:
        sandbox.up(only=only, report=print)
        yield sandbox
    finally:
        sandbox.down(purge=True)


def variables(sandbox: Sandbox) -> dict[str, str]:
    """The addresses of its services, and all connections."""
    return {**sandbox.env(), **airflow_connections(sandbox)}


def fill(servers: str, records: int, size: int, partitions: int) -> dict[int, int]:
    """One past the last offset of each partition of a new topic, once all records are written."""
    client = AdminClient({"bootstrap.servers": servers})
    client.create_topics([NewTopic(TOPIC, partitions, 1)])[TOPIC].result(60)
    return produce(servers, records, size, partitions)


def produce(servers: str, records: int, size: int, partitions: int) -> dict[int, int]:
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
                producer.produce(TOPIC, f'{text[: size - 2]}"}}'.encode(), partition=partition)
                break
            except BufferError:
                producer.poll(0.5)
    if producer.flush(120):
        raise SystemExit("the topic could not be filled")
    print(f"{records:,} records of {size} bytes in {partitions} partitions")
    return until


def feed_document(name: str, spark_connection: str) -> dict[str, object]:
    """A feed of the topic, as its file says it."""
    return {
        "feed": name,
        "source": {"topic": TOPIC},
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
