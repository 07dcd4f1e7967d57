"""A new leader whose high watermark lags behind its log: too few in-sync replicas to move it on."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from sandbox import Sandbox
from sandbox.services.kafka import KafkaCluster, KafkaNode
from tallystick.domain.logs.snapshot import EpochEnd
from tallystick.sources.broker_view import KafkaBrokerView
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import admin, create_topic, wait_until

# A follower learns the high watermark with the answer to its next fetch: here that may take 20 s.
SLOW_TO_TELL = {
    "controlled.shutdown.enable": "false",
    "replica.lag.time.max.ms": "30000",
    "replica.fetch.wait.max.ms": "20000",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
}
BOTH = {"min.insync.replicas": "2"}
TOPIC = "lags"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    cluster = Sandbox.kafka_cluster(directory, brokers=2, settings=SLOW_TO_TELL)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def in_sync(broker: KafkaNode) -> tuple[int, set[int]]:
    """The first partition's leader and its in-sync replicas."""
    partition = admin(broker.address).list_topics(TOPIC, timeout=10).topics[TOPIC].partitions[0]
    return partition.leader, set(partition.isrs)


def test_a_leader_that_waits_for_its_replicas_holds_up_its_partition_alone(
    cluster: KafkaCluster,
) -> None:
    """Nothing was cut, and the epochs say so while nobody can say how far the log may be read."""
    second, third = cluster.brokers[2], cluster.brokers[3]
    servers = cluster.bootstrap_servers
    with KafkaBrokerView(
        {"bootstrap.servers": servers},
        now=lambda: datetime(2026, 11, 1, tzinfo=UTC),
        patience_seconds=5,
    ) as view:
        create_topic(servers, TOPIC, partitions=2, replicas=[[2, 3], [3, 2]], config=BOTH)
        wait_until(lambda: in_sync(third) == (2, {2, 3}), "both replicas in sync", seconds=60)
        produce(servers, TOPIC, messages(100))
        produce(servers, TOPIC, messages(10), partition=1)
        before = view.snapshot(TOPIC)
        epoch = before.partitions[0].leader_epoch
        assert epoch is not None
        assert before.partitions[0].high_watermark == 100

        second.kill()
        wait_until(lambda: in_sync(third) == (3, {3}), "the follower leads alone", seconds=60)
        lagging = view.snapshot(TOPIC)
        assert lagging.leaderless == {0}
        assert lagging.partitions == {1: before.partitions[1]}
        assert view.epoch_ends(TOPIC, {0: epoch}) == {0: EpochEnd(100, 0)}

        second.start()
        wait_until(lambda: in_sync(third)[1] == {2, 3}, "both replicas again", seconds=60)
        after = view.snapshot(TOPIC)
        assert not after.leaderless
        assert after.partitions[0].high_watermark == 100
