"""A log that is cut and grows again, made by an unclean election, seen through one view."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from sandbox import Sandbox
from sandbox.services.kafka import KafkaCluster
from tallystick.domain.ranges import TopicPartition
from tallystick.errors import BrokerUnavailable
from tallystick.sources.broker_view import KafkaBrokerView
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import admin, create_topic, wait_until

pytestmark = pytest.mark.integration

IMPATIENT = {
    "controlled.shutdown.enable": "false",
    "replica.lag.time.max.ms": "3000",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "unclean.leader.election.interval.ms": "1000",
}
UNCLEAN = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
TOPIC = "cut"
PLACE = TopicPartition(TOPIC, 0)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    cluster = Sandbox.kafka_cluster(directory, brokers=2, settings=IMPATIENT)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def in_sync(servers: str) -> tuple[int, set[int]]:
    """The partition's leader and its in-sync replicas."""
    partition = admin(servers).list_topics(TOPIC, timeout=10).topics[TOPIC].partitions[0]
    return partition.leader, set(partition.isrs)


def test_a_cut_log_shows_by_its_end_its_epoch_and_its_records(cluster: KafkaCluster) -> None:
    second, third = cluster.brokers[2], cluster.brokers[3]
    properties = {"bootstrap.servers": cluster.bootstrap_servers}
    with KafkaBrokerView(
        properties, now=lambda: datetime(2026, 11, 1, tzinfo=UTC), patience_seconds=20
    ) as view:
        create_topic(cluster.bootstrap_servers, TOPIC, replicas=[[2, 3]], config=UNCLEAN)
        produce(cluster.bootstrap_servers, TOPIC, messages(100, of="a"))
        wait_until(lambda: in_sync(second.address) == (2, {2, 3}), "both replicas in sync")

        third.kill()
        wait_until(lambda: in_sync(second.address) == (2, {2}), "the follower is out")
        produce(second.address, TOPIC, messages(50, of="b"))
        before = view.snapshot(TOPIC)
        epoch = before.partitions[0].leader_epoch
        assert epoch is not None
        assert before.partitions[0].high_watermark == 150
        anchor = view.records_at(TOPIC, {0: 149})[0]
        assert anchor.leader_epoch == epoch
        assert view.epoch_end(PLACE, epoch) == 150
        old = view.records_at(TOPIC, {0: 99})[0]

        second.kill()
        view_in_a_hurry = KafkaBrokerView(
            properties, now=lambda: before.taken_at, patience_seconds=1
        )
        with view_in_a_hurry, pytest.raises(BrokerUnavailable):
            view_in_a_hurry.snapshot(TOPIC)
        third.start()
        wait_until(lambda: in_sync(third.address)[0] == 3, "the stale follower leads", seconds=60)

        # Cut, and it shows: the end lies before what was read.
        cut = view.snapshot(TOPIC)
        assert cut.topic_id == before.topic_id
        assert cut.partitions[0].high_watermark == 100
        assert cut.partitions[0].leader_epoch is not None
        assert cut.partitions[0].leader_epoch > epoch
        assert view.records_at(TOPIC, {0: 149}) == {}
        assert view.epoch_end(PLACE, epoch) == 100

        # Grown past it: only the anchor and the epoch tell.
        produce(third.address, TOPIC, messages(80, of="c"))
        grown = view.snapshot(TOPIC)
        assert grown.topic_id == before.topic_id
        assert grown.partitions[0].high_watermark == 180
        found = view.records_at(TOPIC, {0: 149})[0]
        assert found.content_hash != anchor.content_hash
        assert found.leader_epoch != anchor.leader_epoch
        assert view.epoch_end(PLACE, epoch) == 100
        assert view.records_at(TOPIC, {0: 99})[0] == old
