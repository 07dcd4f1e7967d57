"""Partitions without a leader, and a log that is cut and grows again by an unclean election: seen
alike through every view.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from sandbox import Sandbox
from sandbox.services.kafka import KafkaCluster
from tallystick.domain.logs.snapshot import EpochEnd
from tallystick.errors import BrokerUnavailable
from tallystick.ports.broker import BrokerView
from tallystick.sources.broker_view import KafkaBrokerView
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import admin, create_topic, purge, wait_until
from tests.support.scripted_broker import Kind, ScriptedBroker

NOW = datetime(2026, 11, 1, tzinfo=UTC)
UNCLEAN = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
TOPIC, HALVES = "cut", "halves"


class CutScene(ABC):
    """Partition 0 of the topic; who falls behind has what was written up to then.

    Of another topic, HALVES, partition 1 has its one copy there, and partition 0 elsewhere.
    """

    view: BrokerView
    halves: BrokerView
    impatient: BrokerView
    """Another view of the topic; it soon gives up a leader that is away."""

    @abstractmethod
    def write(self, count: int, of: str) -> None:
        """So many records."""

    @abstractmethod
    def purge(self, before: int) -> None:
        """Delete the records below this offset."""

    @abstractmethod
    def let_the_follower_fall_behind(self) -> None:
        """What is written from now on has one copy, and nobody leads partition 1 of HALVES."""

    @abstractmethod
    def lose_the_leader(self) -> None:
        """Nobody leads the partition."""

    @abstractmethod
    def let_the_follower_lead(self) -> None:
        """The log ends where the follower fell behind."""


class ScriptedScene(CutScene):
    def __init__(self) -> None:
        self.view = self.impatient = self.broker = ScriptedBroker(TOPIC, 1)
        self.halves = self._halves = ScriptedBroker(HALVES)
        self._copied = 0

    def write(self, count: int, of: str) -> None:
        self.broker.logs[0].append(Kind.RECORD, count, value=of.encode())

    def purge(self, before: int) -> None:
        self.broker.logs[0].log_start_offset = before

    def let_the_follower_fall_behind(self) -> None:
        self._copied = len(self.broker.logs[0].entries)
        self._halves.leaderless = {1}

    def lose_the_leader(self) -> None:
        self.broker.leaderless = {0}

    def let_the_follower_lead(self) -> None:
        self.broker.leaderless = set()
        self.broker.logs[0].cut(self._copied)


class KafkaScene(CutScene):
    def __init__(
        self, cluster: KafkaCluster, view: KafkaBrokerView, impatient: KafkaBrokerView
    ) -> None:
        self._second, self._third = cluster.brokers[2], cluster.brokers[3]
        self.view = self.halves = view
        self.impatient = impatient
        servers = cluster.bootstrap_servers
        create_topic(servers, TOPIC, replicas=[[2, 3]], config=UNCLEAN)
        create_topic(servers, HALVES, partitions=2, replicas=[[2], [3]])
        self._leader = self._second.address

    def write(self, count: int, of: str) -> None:
        produce(self._leader, TOPIC, messages(count, of=of))

    def purge(self, before: int) -> None:
        purge(self._leader, TOPIC, {0: before})

    def let_the_follower_fall_behind(self) -> None:
        wait_until(lambda: self._in_sync() == (2, {2, 3}), "both replicas in sync")
        self._third.kill()
        wait_until(lambda: self._in_sync() == (2, {2}), "the follower is out")

    def lose_the_leader(self) -> None:
        self._second.kill()

    def let_the_follower_lead(self) -> None:
        self._third.start()
        self._leader = self._third.address
        wait_until(lambda: self._in_sync()[0] == 3, "the stale follower leads", seconds=60)

    def _in_sync(self) -> tuple[int, set[int]]:
        """The partition's leader and its in-sync replicas."""
        topic = admin(self._leader).list_topics(TOPIC, timeout=10).topics[TOPIC]
        return topic.partitions[0].leader, set(topic.partitions[0].isrs)


@pytest.fixture(params=["scripted", pytest.param("kafka", marks=pytest.mark.sandbox)])
def scene(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CutScene]:
    if request.param == "scripted":
        yield ScriptedScene()
        return
    cluster = Sandbox.kafka_cluster(tmp_path_factory.mktemp("cluster"), brokers=2)
    try:
        cluster.start()
        properties = {"bootstrap.servers": cluster.bootstrap_servers}
        with (
            KafkaBrokerView(properties, now=lambda: NOW, patience_seconds=8) as view,
            KafkaBrokerView(properties, now=lambda: NOW, patience_seconds=2) as impatient,
        ):
            yield KafkaScene(cluster, view, impatient)
    finally:
        cluster.stop()


def test_a_cut_log_shows_by_its_end_its_epoch_and_its_records(scene: CutScene) -> None:
    view = scene.view
    scene.write(100, of="a")
    scene.let_the_follower_fall_behind()
    scene.write(50, of="b")
    before = view.snapshot(TOPIC)
    epoch = before.partitions[0].leader_epoch
    assert epoch is not None
    assert before.partitions[0].high_watermark == 150
    anchor = view.records_at(TOPIC, {0: 149})[0]
    assert anchor.leader_epoch == epoch
    assert view.epoch_ends(TOPIC, {0: epoch}) == {0: EpochEnd(150, 0)}
    assert view.epoch_ends(TOPIC, {0: epoch + 1}) == {}
    old = view.records_at(TOPIC, {0: 99})[0]

    # One partition without a leader is told as that, and fails what asks about it.
    half = scene.halves.snapshot(HALVES)
    assert (half.leaderless, half.partitions.keys()) == ({1}, {0})
    assert scene.halves.epoch_ends(HALVES, {0: 0}).keys() == {0}
    with pytest.raises(BrokerUnavailable, match="halves-1 has no leader"):
        scene.halves.epoch_ends(HALVES, {0: 0, 1: 0})

    scene.lose_the_leader()
    with pytest.raises(BrokerUnavailable):
        scene.impatient.snapshot(TOPIC)
    with pytest.raises(BrokerUnavailable):
        scene.impatient.epoch_ends(TOPIC, {0: epoch})
    with pytest.raises(BrokerUnavailable):
        scene.impatient.records_at(TOPIC, {0: 99})
    scene.let_the_follower_lead()

    # Cut, and it shows: the end lies before what was read.
    cut = view.snapshot(TOPIC)
    assert cut.topic_id == before.topic_id
    assert cut.partitions[0].high_watermark == 100
    new_epoch = cut.partitions[0].leader_epoch
    assert new_epoch is not None
    assert new_epoch > epoch
    assert view.records_at(TOPIC, {0: 149}) == {}
    assert view.epoch_ends(TOPIC, {0: epoch}) == {0: EpochEnd(100, 0)}
    assert view.epoch_ends(TOPIC, {0: new_epoch}) == {0: EpochEnd(100, 0)}

    # Grown past it: only the anchor and the epoch tell.
    scene.write(80, of="c")
    grown = view.snapshot(TOPIC)
    assert grown.topic_id == before.topic_id
    assert grown.partitions[0].high_watermark == 180
    found = view.records_at(TOPIC, {0: 149})[0]
    assert found.content_hash != anchor.content_hash
    assert found.leader_epoch == new_epoch
    assert view.epoch_ends(TOPIC, {0: epoch}) == {0: EpochEnd(100, 0)}
    assert view.epoch_ends(TOPIC, {0: new_epoch}) == {0: EpochEnd(180, 0)}
    assert view.records_at(TOPIC, {0: 99})[0] == old

    # What expires takes its epochs along: the old one ends where the oldest known one begins now.
    scene.purge(120)
    assert view.epoch_ends(TOPIC, {0: epoch}) == {0: EpochEnd(120, 120)}
    assert view.epoch_ends(TOPIC, {0: new_epoch}) == {0: EpochEnd(180, 120)}
