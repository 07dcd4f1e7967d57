"""Feeds in which everything is unusual and nothing is wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.support.detector_faults import LONGEST_MS, SHORT_LIVED, sent_at, start_of
from tests.support.detector_scene import Scene
from tests.support.kafka_producers import (
    TransactionalProducer,
    empty_transaction,
    messages,
    produce,
)
from tests.support.kafka_reading import seen_records
from tests.support.kafka_topics import ANY_TIME, COMPACTED, purge, set_config, wait_until
from tests.support.whole_way import Way


class Calm:
    """Feeds in which everything is unusual and nothing is wrong."""

    ENDED, IDLE, EMPTY, YOUNG, OPEN, PURGED = range(6)

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.mixed = scene.way("calm", partitions=6)
        self.lying = scene.way("lying", partitions=2, config={**ANY_TIME, "retention.ms": "-1"})
        self.compacted = scene.way("compacted", config=COMPACTED)
        self.aged = scene.way("aged")

    @property
    def ways(self) -> tuple[Way, ...]:
        return self.mixed, self.lying, self.compacted, self.aged

    def fill(self) -> None:
        servers, topic = self.scene.servers, self.mixed.topic
        ended = TransactionalProducer(servers, topic)
        ended.commit(messages(10)).abort(messages(7)).commit(messages(3))
        empty_transaction(servers, topic)
        empty_transaction(servers, topic, is_committed=False)
        for partition in (self.IDLE, self.PURGED):
            produce(servers, topic, messages(12), partition=partition)
        self.open_one = TransactionalProducer(servers, topic, timeout_ms=LONGEST_MS)
        self.open_one.open(messages(5), partition=self.OPEN)
        now = datetime.now(UTC)
        for partition, days in ((0, (0, -9000, 400, -1, 9000)), (1, (9000, 0, -20000))):
            for day in days:
                at = sent_at(now + timedelta(days=day), 2)
                produce(servers, self.lying.topic, at, partition=partition)
        for part in range(3):
            sent = messages(50, keys=10, of=f"part {part} ")
            produce(servers, self.compacted.topic, sent)
        produce(servers, self.aged.topic, messages(9))

    def land(self) -> None:
        wait_until(
            lambda: len(seen_records(self.scene.servers, self.compacted.topic)) < 100,
            "the cleaner has run",
        )
        for way in self.ways:
            self.scene.landed(way)
        set_config(self.scene.servers, self.aged.topic, **SHORT_LIVED)

    def go_on(self) -> None:
        """What may come between a landing and a look."""
        servers, topic = self.scene.servers, self.mixed.topic
        produce(servers, topic, messages(4), partition=self.YOUNG)
        produce(servers, topic, messages(4), partition=self.OPEN)
        purge(servers, topic, {self.PURGED: 7})
        wait_until(lambda: start_of(self.scene, self.aged) == 9, "what was landed has expired")

    def reconciled(self) -> None:
        for way in self.ways:
            self.scene.reconciled(way)


def rolling_restart(scene: Scene, topics: list[str]) -> None:
    """One broker after the other, each time with a change of leaders."""
    for broker in scene.cluster.brokers.values():
        broker.stop()
        broker.start()
        scene.wait_until_all_in_sync(topics)
