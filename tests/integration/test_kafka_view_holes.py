"""Holes of real logs, explained by the headers of their batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import pytest

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.sources.broker_view import KafkaBrokerView
from tests.support.kafka_producers import (
    Message,
    TransactionalProducer,
    empty_transaction,
    messages,
    produce,
)
from tests.support.kafka_reading import seen_records
from tests.support.kafka_topics import (
    COMPACTED,
    create_topic,
    recreate_topic,
    set_config,
    wait_until,
)

CONTROL, ABORTED, COMPACTED_AWAY = HoleClass.CONTROL, HoleClass.ABORTED, HoleClass.COMPACTED


@pytest.fixture
def view(kafka: str) -> Iterator[KafkaBrokerView]:
    with KafkaBrokerView(
        {"bootstrap.servers": kafka}, now=lambda: datetime(2026, 11, 1, tzinfo=UTC)
    ) as view:
        yield view


def explained(
    view: KafkaBrokerView, topic: str, holes: OffsetRuns, *, until: int
) -> dict[HoleClass, list[tuple[int, int]]]:
    offsets = OffsetRange(TopicPartition(topic, 0), 0, until)
    found = view.explain_holes(offsets, holes, Isolation.READ_COMMITTED)
    return {kind: list(runs) for kind, runs in found.items()}


def holes_of(kafka: str, topic: str, until: int) -> OffsetRuns:
    """The offsets below `until` that librdkafka doesn't show."""
    seen = seen_records(kafka, topic)
    return OffsetRuns.of((each.offset, each.offset + 1) for each in seen).complement(0, until)


def end_of(view: KafkaBrokerView, topic: str) -> int:
    return view.snapshot(topic).partitions[0].last_stable_offset


def test_interleaved_producers_are_told_apart(kafka: str, view: KafkaBrokerView) -> None:
    topic = create_topic(kafka)
    kept, dropped = TransactionalProducer(kafka, topic), TransactionalProducer(kafka, topic)
    for round_ in range(3):
        kept.open(messages(4))
        dropped.open(messages(5))
        produce(kafka, topic, messages(2))
        kept.add(messages(1)).end()
        dropped.add(messages(2))
        # The producer of the aborted transaction may commit the next one: only the first is out.
        dropped.end() if round_ == 1 else dropped.abort_open()
    until = end_of(view, topic)
    holes = holes_of(kafka, topic, until)
    found = explained(view, topic, holes, until=until)
    assert OffsetRuns.of([*found[CONTROL], *found[ABORTED]]) == holes
    assert sum(b - a for a, b in found[CONTROL]) == 6
    assert sum(b - a for a, b in found[ABORTED]) == 14


def test_empty_transactions_leave_lone_markers_also_at_the_very_end(
    kafka: str, view: KafkaBrokerView
) -> None:
    topic = create_topic(kafka)
    empty_transaction(kafka, topic)
    produce(kafka, topic, messages(3))
    empty_transaction(kafka, topic, is_committed=False)
    empty_transaction(kafka, topic)
    assert end_of(view, topic) == 6
    holes = holes_of(kafka, topic, 6)
    assert list(holes) == [(0, 1), (4, 6)]
    assert explained(view, topic, holes, until=6) == {CONTROL: [(0, 1), (4, 6)]}


def test_a_lost_record_is_never_explained(kafka: str, view: KafkaBrokerView) -> None:
    """What a short read would leave out: records that are there for all to see."""
    topic = create_topic(kafka)
    TransactionalProducer(kafka, topic).commit(messages(5)).abort(messages(5))
    produce(kafka, topic, messages(8))
    lost = OffsetRuns.of([(2, 4), (13, 15), (19, 20)])
    assert explained(view, topic, lost, until=20) == {}
    holes = holes_of(kafka, topic, 20).union(lost)
    assert explained(view, topic, holes, until=20) == {
        CONTROL: [(5, 6), (11, 12)],
        ABORTED: [(6, 11)],
    }


def test_holes_far_apart_are_found_by_single_requests(kafka: str, view: KafkaBrokerView) -> None:
    """Two markers with far more than one answer's worth of records between them."""
    topic = create_topic(kafka)
    producer = TransactionalProducer(kafka, topic)
    producer.commit([Message(b"x" * 1000)] * 2000).commit([Message(b"x" * 1000)] * 2000)
    holes = OffsetRuns.of([(2000, 2001), (4001, 4002)])
    assert explained(view, topic, holes, until=4002) == {CONTROL: [(2000, 2001), (4001, 4002)]}


def test_batches_larger_than_the_fetch_bound_come_whole(kafka: str, view: KafkaBrokerView) -> None:
    topic = create_topic(kafka)
    producer = TransactionalProducer(kafka, topic)
    producer.commit([Message(b"x" * 900_000)] * 2).abort([Message(b"y" * 900_000)] * 2)
    holes = holes_of(kafka, topic, 6)
    assert explained(view, topic, holes, until=6) == {CONTROL: [(2, 3), (5, 6)], ABORTED: [(3, 5)]}


def cleaned(kafka: str, view: KafkaBrokerView, topic: str, visible: int) -> tuple[OffsetRuns, int]:
    """The holes once the log cleaner has left so many records, and the stable end."""

    def is_clean() -> bool:
        return len(seen_records(kafka, topic)) <= visible

    wait_until(is_clean, f"the cleaner leaves {visible} records of {topic}")
    until = end_of(view, topic)
    return holes_of(kafka, topic, until), until


def assert_all_compacted(view: KafkaBrokerView, topic: str, holes: OffsetRuns, until: int) -> None:
    assert holes.count > 0
    assert explained(view, topic, holes, until=until) == {COMPACTED_AWAY: list(holes)}


@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_compacted_offsets_under_every_codec(kafka: str, view: KafkaBrokerView, codec: str) -> None:
    """Whole batches vanish without a header; others keep theirs and some of their records."""
    topic = create_topic(kafka, config=COMPACTED | {"compression.type": codec})
    for each in ("a", "b", "c"):
        produce(kafka, topic, messages(50, keys=10, of=each))
    produce(kafka, topic, [Message(b"v", b"kept")])
    holes, until = cleaned(kafka, view, topic, visible=11)
    assert (until, holes.count) == (151, 140)
    assert_all_compacted(view, topic, holes, until)
    # Headers of incomplete batches prove it whatever the policy is now; vanished ones do not.
    set_config(kafka, topic, cleanup_policy="delete")
    headed = explained(view, topic, holes, until=until)
    assert headed == {COMPACTED_AWAY: [(100, 140)]}
    # A record that survived is data: its absence stays unexplained.
    lost = OffsetRuns.of([(145, 146)])
    assert explained(view, topic, holes.union(lost), until=until) == headed


def test_compaction_of_aborted_records_and_their_markers(kafka: str, view: KafkaBrokerView) -> None:
    topic = create_topic(kafka, config=COMPACTED)
    producer = TransactionalProducer(kafka, topic)
    producer.commit(messages(20, keys=5)).abort(messages(20, keys=5))
    producer.commit(messages(20, keys=5)).abort(messages(3, keys=5))
    produce(kafka, topic, [Message(b"v", b"kept")])
    holes, until = cleaned(kafka, view, topic, visible=6)
    found = explained(view, topic, holes, until=until)
    together = OffsetRuns.of(pair for pairs in found.values() for pair in pairs)
    assert together == holes
    assert set(found) <= {CONTROL, ABORTED, COMPACTED_AWAY}
    assert COMPACTED_AWAY in found


def test_a_recreated_topic_explains_nothing_of_its_former_self(
    kafka: str, view: KafkaBrokerView
) -> None:
    topic = create_topic(kafka)
    TransactionalProducer(kafka, topic).commit(messages(5)).commit(messages(5))
    holes = holes_of(kafka, topic, 12)
    assert explained(view, topic, holes, until=12) == {CONTROL: [(5, 6), (11, 12)]}
    recreate_topic(kafka, topic)
    produce(kafka, topic, messages(8))
    assert explained(view, topic, holes, until=12) == {}


def test_the_walk_and_a_consumer_agree_on_a_long_mixed_log(
    kafka: str, view: KafkaBrokerView
) -> None:
    topic = create_topic(kafka, partitions=2)
    producers = [TransactionalProducer(kafka, topic) for _ in range(3)]
    for n in range(60):
        producer = producers[n % 3]
        sent = [Message(b"v" * (n * 100), b"k")] * (1 + n % 7)
        producer.abort(sent) if n % 4 == 1 else producer.commit(sent)
        if n % 5 == 0:
            produce(kafka, topic, messages(3))
    until = end_of(view, topic)
    holes = holes_of(kafka, topic, until)
    found: Mapping[HoleClass, list[tuple[int, int]]] = explained(view, topic, holes, until=until)
    assert OffsetRuns.of([*found[CONTROL], *found[ABORTED]]) == holes
    assert sum(b - a for a, b in found[CONTROL]) == 60
