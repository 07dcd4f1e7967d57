"""One topic on two brokers, a real one and a scripted one, written to in the same words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Final
from uuid import uuid4

from tallystick.domain.rows.record_hash import record_hash
from tallystick.ports.broker import BrokerView
from tallystick.sources.broker_view import KafkaBrokerView
from tests.support.kafka_producers import Message, TransactionalProducer, produce
from tests.support.kafka_reading import seen_records
from tests.support.kafka_topics import (
    COMPACTED,
    add_partitions,
    create_topic,
    purge,
    recreate_topic,
    set_config,
    wait_until,
)
from tests.support.scripted_broker import Kind, Log, ScriptedBroker

NOW: Final = datetime(2026, 11, 1, 12, 30, tzinfo=UTC)
KEEPS_ALL: Final = {"retention.ms": "-1"}


class BrokerScene(ABC):
    """A topic with two partitions; offsets are what tests count on, values are `v` and the offset.

    What is written at once may lie in one batch or in several, as brokers please.
    """

    topic: str
    view: BrokerView
    impatient: BrokerView
    """Another view, which soon gives up what is not there."""

    @abstractmethod
    def write(self, count: int, *, partition: int = 0, seconds: Sequence[float] = ()) -> None:
        """Records without a key, at so many seconds after NOW, by default all at NOW."""

    @abstractmethod
    def create(self, topic: str) -> None:
        """Make another topic, until every question knows it."""

    @abstractmethod
    def open(self, count: int, *, partition: int = 0) -> None:
        """So many records of a transaction that stays open; one at a time."""

    @abstractmethod
    def end(self, *, is_committed: bool) -> None:
        """End the open transaction, by one marker."""

    @abstractmethod
    def purge(self, before: Mapping[int, int]) -> None:
        """Delete the records below these offsets."""

    @abstractmethod
    def recreate(self, partitions: int) -> None:
        """Delete the topic, and make another one of its name."""

    @abstractmethod
    def add_partitions(self, total: int) -> None:
        """Let the topic have so many partitions."""

    @abstractmethod
    def lose_the_first_to_compaction(self) -> None:
        """Partition 0 holds offsets 1 and 2; a record at 0 was compacted away, without a trace."""

    @abstractmethod
    def set_compacted(self, *, is_compacted: bool) -> None:
        """Change the topic's policy."""

    @abstractmethod
    def keep(self, *, seconds: int, byte_count: int) -> None:
        """Let the topic keep no more than that."""

    def commit(self, count: int, *, partition: int = 0) -> None:
        """A transaction of so many records, and its marker."""
        self.open(count, partition=partition)
        self.end(is_committed=True)

    def abort(self, count: int, *, partition: int = 0) -> None:
        """The same, aborted."""
        self.open(count, partition=partition)
        self.end(is_committed=False)


def hash_at(offset: int, *, partition: int = 0, seconds: float = 0) -> bytes:
    """What `records_at` gives for a record that `write` has written."""
    at = NOW + timedelta(seconds=seconds)
    return record_hash(
        partition=partition,
        offset=offset,
        timestamp_ms=int(at.timestamp() * 1000),
        key=None,
        value=b"v%d" % offset,
        headers=(),
    )


class ScriptedScene(BrokerScene):
    """On a ScriptedBroker."""

    def __init__(self) -> None:
        self.topic = "scripted-topic"
        self.view = self.impatient = self.broker = ScriptedBroker(self.topic)
        self._opened: Log | None = None

    def write(self, count: int, *, partition: int = 0, seconds: Sequence[float] = ()) -> None:
        for after in seconds or [0] * count:
            at = NOW + timedelta(seconds=after)
            self.broker.logs[partition].append(Kind.RECORD, 1, at=at)

    def create(self, topic: str) -> None:
        self.broker.others.add(topic)

    def open(self, count: int, *, partition: int = 0) -> None:
        self._opened = self.broker.logs[partition]
        self._opened.open(count)

    def end(self, *, is_committed: bool) -> None:
        assert self._opened
        self._opened.end(is_committed=is_committed)

    def purge(self, before: Mapping[int, int]) -> None:
        for partition, offset in before.items():
            self.broker.logs[partition].log_start_offset = offset

    def recreate(self, partitions: int) -> None:
        self.broker.recreate(partitions)

    def add_partitions(self, total: int) -> None:
        for number in range(len(self.broker.logs), total):
            self.broker.logs[number] = Log()

    def lose_the_first_to_compaction(self) -> None:
        self.broker.is_compacted = True
        self.write(3, seconds=[0, 1, 2])
        self.broker.logs[0].entries[0].kind = Kind.COMPACTED

    def set_compacted(self, *, is_compacted: bool) -> None:
        self.broker.is_compacted = is_compacted

    def keep(self, *, seconds: int, byte_count: int) -> None:
        self.broker.retention_ms = seconds * 1000
        self.broker.retention_bytes = byte_count


class KafkaScene(BrokerScene):
    """On a real broker, a topic of its own."""

    def __init__(self, servers: str, view: KafkaBrokerView, impatient: KafkaBrokerView) -> None:
        self._servers = servers
        self.view, self.impatient = view, impatient
        self.topic = f"contract-{uuid4().hex[:12]}"
        create_topic(servers, self.topic, partitions=2, config=KEEPS_ALL)

    def write(self, count: int, *, partition: int = 0, seconds: Sequence[float] = ()) -> None:
        sent = self._messages(partition, seconds or [0] * count)
        produce(self._servers, self.topic, sent, partition=partition)

    def create(self, topic: str) -> None:
        create_topic(self._servers, topic)

    @cached_property
    def _opened(self) -> TransactionalProducer:
        return TransactionalProducer(self._servers, self.topic)

    def open(self, count: int, *, partition: int = 0) -> None:
        self._opened.open(self._messages(partition, [0] * count), partition=partition)

    def end(self, *, is_committed: bool) -> None:
        self._opened.end() if is_committed else self._opened.abort_open()

    def purge(self, before: Mapping[int, int]) -> None:
        purge(self._servers, self.topic, before)

    def recreate(self, partitions: int) -> None:
        recreate_topic(self._servers, self.topic, partitions=partitions, config=KEEPS_ALL)

    def add_partitions(self, total: int) -> None:
        add_partitions(self._servers, self.topic, total)

    def lose_the_first_to_compaction(self) -> None:
        config = {name.replace(".", "_"): value for name, value in COMPACTED.items()}
        set_config(self._servers, self.topic, **config)
        # A segment is closed by the times of its records, and the last one is never cleaned.
        for key, each in zip(
            (b"same", b"same", b"kept"), self._messages(0, [0, 1, 2]), strict=True
        ):
            produce(self._servers, self.topic, [replace(each, key=key)])
        wait_until(
            lambda: [each.offset for each in seen_records(self._servers, self.topic)] == [1, 2],
            "the first record is compacted away",
        )

    def set_compacted(self, *, is_compacted: bool) -> None:
        policy = "compact" if is_compacted else "delete"
        set_config(self._servers, self.topic, cleanup_policy=policy)

    def keep(self, *, seconds: int, byte_count: int) -> None:
        limits = {"retention_ms": str(seconds * 1000), "retention_bytes": str(byte_count)}
        set_config(self._servers, self.topic, **limits)

    def _messages(self, partition: int, seconds: Sequence[float]) -> Iterator[Message]:
        """Numbered by their offsets, which the broker alone knows."""
        first = self.view.snapshot(self.topic).partitions[partition].high_watermark
        for number, after in enumerate(seconds):
            at = NOW + timedelta(seconds=after)
            yield Message(b"v%d" % (first + number), timestamp_ms=int(at.timestamp() * 1000))
