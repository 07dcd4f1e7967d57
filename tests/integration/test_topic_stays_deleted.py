"""No client of ours makes a topic, on a broker that makes whatever a client asks for."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.errors import SourceRefused, TopicGone, TopicUnknown
from tallystick.ports.progress import Progress
from tallystick.sources.broker_view import KafkaBrokerView
from tallystick.sources.frontier_group import KafkaFrontierGroup
from tallystick.sources.second_reader import LibrdkafkaReader
from tallystick.spark.connect_runner import ConnectRunner
from tests.support.busy import BUSY_SECONDS
from tests.support.connect_servers import LONG, server_at, server_of_its_own
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import admin, create_topic, delete_topic, wait_until
from tests.support.own_kafka import kafka_of_its_own
from tests.support.whole_way import Way, environ_of

PARTITIONS = 8
GONE = "never-made"
NOW = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A broker with Kafka's default: it makes a topic that a client asks for."""
    place = tmp_path_factory.mktemp("eager")
    with kafka_of_its_own(place, auto_create_topics_enable="true") as servers:
        yield servers


@dataclass
class Deleting:
    """Deletes the topic as soon as Spark has written a first file, and others are to be read."""

    servers: str
    topic: str
    deleted_at: float | None = field(default=None, init=False)

    def __call__(self, told: Progress) -> None:
        if self.deleted_at is None and told.done and told.is_estimate:
            self.deleted_at = time.monotonic()
            delete_topic(self.servers, self.topic)


def topics(servers: str) -> set[str]:
    return set(admin(servers).list_topics(timeout=10).topics)


def test_the_broker_makes_what_a_client_asks_for(eager: str) -> None:
    admin(eager).list_topics("made-by-asking", timeout=10)

    wait_until(lambda: "made-by-asking" in topics(eager), "the topic is made")


def test_questions_about_a_topic_never_make_it(eager: str) -> None:
    properties = {"bootstrap.servers": eager}
    partition = TopicPartition(GONE, 0)
    with KafkaBrokerView(properties, now=lambda: NOW, patience_seconds=2) as view:
        for ask in (
            lambda: view.snapshot(GONE),
            lambda: view.offsets_at(GONE, NOW, [0]),
            lambda: view.batch_heads(GONE, {0: 0}),
            lambda: view.epoch_ends(GONE, {0: 0}),
        ):
            with pytest.raises(TopicUnknown):
                ask()
    reader = LibrdkafkaReader(properties, patience_seconds=2)
    with pytest.raises(TopicUnknown):
        reader.read([OffsetRange(partition, 0, 5)], Isolation.READ_COMMITTED)
    reader.close()
    with pytest.raises(SourceRefused, match="Unknown topic"):
        KafkaFrontierGroup(properties, "lag").show("orders", GONE, {0: 3})

    assert GONE not in topics(eager)


def test_a_topic_that_is_deleted_while_spark_reads_it_stays_deleted_and_holds_up_nobody(
    eager: str, hdfs: Any, ledger_dsn: str, tmp_path: Path
) -> None:
    quick = {"spark.connect.progress.reportInterval": "50ms"}
    with server_of_its_own(tmp_path, master="local[1]", **quick) as server:
        environ = environ_of(eager, hdfs, ledger_dsn, server.address)
        way = Way(create_topic(eager, partitions=PARTITIONS), environ)
        for each in range(PARTITIONS):
            produce(eager, way.topic, messages(20_000), partition=each)
        deleting = Deleting(eager, way.topic)
        target = {"root": way.root, "replication": 1, "target_file_bytes": 1 << 20}
        runner = ConnectRunner(server_at(server.address), {}, LONG)

        report = way.land(runner, feed=way.feed(target=target), progress=deleting)

        assert deleting.deleted_at is not None
        assert time.monotonic() - deleting.deleted_at < 60 + BUSY_SECONDS
        assert isinstance(report.errors[0], TopicGone)
        other = Way(create_topic(eager), environ)
        produce(eager, other.topic, messages(30))
        assert other.landed(runner).batches
        assert time.monotonic() - deleting.deleted_at < 120 + BUSY_SECONDS

    assert way.topic not in topics(eager)
