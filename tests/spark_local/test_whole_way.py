"""From a Kafka record to a proven Parquet file, on real services: what logs really do.

Landed rows are read by pyarrow, and compared with what librdkafka reads.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.errors import SourceChanged, TopicUnknown, VerificationFailed
from tallystick.workflows.landing.run import RunReport
from tests.support.kafka_producers import (
    AWKWARD,
    TransactionalProducer,
    empty_transaction,
    messages,
    produce,
)
from tests.support.kafka_reading import seen_records
from tests.support.kafka_topics import (
    COMPACTED,
    add_partitions,
    create_topic,
    purge,
    recreate_topic,
    wait_until,
)
from tests.support.whole_way import SessionRunner, Way, environ_of

NewWay = Callable[..., Way]


@pytest.fixture
def new_way(kafka: str, hdfs: Any, ledger_dsn: str, spark: SparkSession) -> NewWay:
    environ = environ_of(kafka, hdfs, ledger_dsn)

    def build(**layout: Any) -> Way:
        return Way(create_topic(kafka, **layout), environ, spark)

    return build


def holes_of(report: RunReport) -> dict[HoleClass, int]:
    """Holes of all batches, classes without any left out."""
    counts: dict[HoleClass, int] = {}
    for batch in report.batches:
        assert batch.commit
        for kind, count in batch.commit.hole_counts.items():
            counts[kind] = counts.get(kind, 0) + count
    return {kind: count for kind, count in counts.items() if count}


def test_awkward_records_land_byte_for_byte(new_way: NewWay, kafka: str) -> None:
    any_time = {"message.timestamp.after.max.ms": str(2**63 - 1)}
    way = new_way(partitions=3, config=any_time)
    produce(kafka, way.topic, AWKWARD, partition=0)
    produce(kafka, way.topic, messages(1000), partition=1)
    way.landed()
    produce(kafka, way.topic, messages(5), partition=1)
    way.landed()
    assert way.rows() == way.produced({0: (0, len(AWKWARD)), 1: (0, 1005)})
    assert way.reconciled().verdict is Verdict.PROVEN_OK
    assert way.staged() == []


def test_transactions_with_aborts_empty_ones_and_a_marker_at_the_very_end(
    new_way: NewWay, kafka: str
) -> None:
    way = new_way()
    producer = TransactionalProducer(kafka, way.topic)
    producer.commit(messages(10)).abort(messages(10, of="aborted")).commit(messages(10))
    empty_transaction(kafka, way.topic)
    producer.abort(messages(3, of="aborted"))
    empty_transaction(kafka, way.topic, is_committed=False)
    report = way.landed()
    # 20 visible, 13 aborted, 4 markers of the producer and 2 of the empty transactions.
    assert holes_of(report) == {HoleClass.ABORTED: 13, HoleClass.CONTROL: 6}
    assert way.rows() == way.produced({0: (0, 39)})
    producer.commit(messages(4))
    assert holes_of(way.landed()) == {HoleClass.CONTROL: 1}
    assert len(way.rows()) == 24
    assert way.reconciled().findings == ()


def test_read_uncommitted_lands_what_was_aborted(new_way: NewWay, kafka: str) -> None:
    way = new_way()
    TransactionalProducer(kafka, way.topic).commit(messages(5)).abort(messages(5))
    report = way.landed(feed=way.feed(source={"isolation": "read_uncommitted"}))
    assert holes_of(report) == {HoleClass.CONTROL: 2}
    assert len(way.rows()) == 10


def test_an_open_transaction_is_waited_for_and_never_skipped(new_way: NewWay, kafka: str) -> None:
    way = new_way()
    produce(kafka, way.topic, messages(3))
    open_one = TransactionalProducer(kafka, way.topic).open(messages(5, of="open"))
    produce(kafka, way.topic, messages(3, of="behind"))
    way.landed()
    assert len(way.rows()) == 3, "nothing at or after the open transaction is stable"
    open_one.end()
    way.landed()
    assert way.rows() == way.produced({0: (0, 12)})
    assert len(way.rows()) == 11


def test_a_compacted_topic_is_landed_with_proven_holes(new_way: NewWay, kafka: str) -> None:
    way = new_way(config=COMPACTED)
    for part in range(3):
        produce(kafka, way.topic, messages(50, keys=10, of=f"part {part} "))
    wait_until(lambda: len(seen_records(kafka, way.topic)) < 100, "the cleaner has run")
    report = way.landed()
    kept = len(way.rows())
    assert kept < 100
    assert holes_of(report) == {HoleClass.COMPACTED: 150 - kept}
    assert way.rows() == way.produced({0: (0, 150)})
    produce(kafka, way.topic, messages(50, keys=10, of="more "))
    assert not way.landed().findings


def test_purged_between_two_runs_is_lost_with_its_exact_range(new_way: NewWay, kafka: str) -> None:
    way = new_way()
    produce(kafka, way.topic, messages(10))
    way.landed()
    produce(kafka, way.topic, messages(20))
    purge(kafka, way.topic, {0: 17})
    report = way.landed()
    [finding] = report.findings
    assert (finding.verdict, finding.from_offset, finding.until_offset) == (
        Verdict.PROVEN_LOSS,
        10,
        17,
    )
    assert [each.offset for each in way.rows()] == [*range(10), *range(17, 30)]


def test_what_is_purged_during_the_landing_is_not_committed_and_named_by_the_runs_own_check(
    new_way: NewWay, kafka: str
) -> None:
    way = new_way(partitions=2)
    for partition in (0, 1):
        produce(kafka, way.topic, messages(40), partition=partition)
    runner = SessionRunner(way.spark, before=lambda plan: purge(kafka, way.topic, {0: 25}))
    report = way.land(runner)
    [batch] = report.batches
    assert batch.error, "the range was cut while Spark was about to read it"
    assert way.rows() == []
    assert [(f.from_offset, f.until_offset) for f in report.findings] == [(0, 25)]
    assert way.landed().findings == []
    assert way.rows() == way.produced({0: (25, 40), 1: (0, 40)})
    assert way.staged() == []


def test_purged_after_the_read_and_before_the_verification_keeps_what_landed(
    new_way: NewWay, kafka: str
) -> None:
    way = new_way()
    produce(kafka, way.topic, messages(40))
    way.landed(SessionRunner(way.spark, after=lambda plan: purge(kafka, way.topic, {0: 40})))
    assert [each.offset for each in way.rows()] == list(range(40))
    produce(kafka, way.topic, messages(2))
    assert way.landed().findings == []


@pytest.mark.parametrize("count", [4, 10, 23], ids=["fewer", "equal", "more"])
def test_a_recreated_topic_lands_beside_its_first_life(
    new_way: NewWay, kafka: str, count: int
) -> None:
    way = new_way()
    produce(kafka, way.topic, messages(10))
    way.landed()
    recreate_topic(kafka, way.topic)
    produce(kafka, way.topic, messages(count, of="second life "))
    report = way.landed()
    assert {each.code for each in report.findings} == {FindingCode.TOPIC_RECREATED}
    assert [each.offset for each in way.rows(generation=1)] == list(range(10))
    assert way.rows(generation=2) == way.produced({0: (0, count)})
    produce(kafka, way.topic, messages(3))
    assert way.landed().findings == []


def test_a_topic_that_is_recreated_during_the_landing_commits_nothing(
    new_way: NewWay, kafka: str
) -> None:
    way = new_way()
    produce(kafka, way.topic, messages(10))

    def recreate(plan: object) -> None:
        recreate_topic(kafka, way.topic)
        produce(kafka, way.topic, messages(10, of="second life "))

    [batch] = way.land(SessionRunner(way.spark, after=recreate)).batches
    assert isinstance(batch.error, VerificationFailed)
    assert "was re-created while the batch was landed" in str(batch.error)
    way.landed()
    assert way.rows(generation=1) == []
    assert way.rows(generation=2) == way.produced({0: (0, 10)})


def test_a_batch_of_a_topic_that_is_gone_does_not_start_spark(new_way: NewWay, kafka: str) -> None:
    from tallystick.domain.identities import AttemptId, Owner
    from tallystick.workflows.landing.land import land_batch
    from tallystick.workflows.planning.plan import plan_feed

    way = new_way()
    produce(kafka, way.topic, messages(10))
    with way.services() as services:
        [batch] = plan_feed(services, None, Owner("test")).batches
        recreate_topic(kafka, way.topic)
        with pytest.raises(SourceChanged, match="was re-created since the batch was planned"):
            land_batch(services, batch.batch_id, AttemptId("a" * 32), Owner("test"))


def test_added_partitions_are_read_from_their_beginning(new_way: NewWay, kafka: str) -> None:
    way = new_way()
    produce(kafka, way.topic, messages(5))
    way.landed()
    add_partitions(kafka, way.topic, 3)
    produce(kafka, way.topic, messages(7), partition=2)
    way.landed()
    assert way.rows() == way.produced({0: (0, 5), 2: (0, 7)})
    produce(kafka, way.topic, messages(2), partition=1)
    way.landed()
    assert way.rows() == way.produced({0: (0, 5), 1: (0, 2), 2: (0, 7)})


def test_empty_and_never_written_partitions_are_silent(new_way: NewWay, kafka: str) -> None:
    way = new_way(partitions=4)
    assert way.landed().plan.all_batches == ()
    produce(kafka, way.topic, messages(3), partition=1)
    purge(kafka, way.topic, {1: 3})
    report = way.landed()
    # Written, and gone before the first look at it.
    assert [(f.partition, f.from_offset, f.until_offset) for f in report.findings] == [(1, 0, 3)]
    assert way.landed().findings == []
    assert way.files() == []


def test_quiet_partitions_share_files(new_way: NewWay, kafka: str) -> None:
    way = new_way(partitions=100)
    producer = Producer({"bootstrap.servers": kafka})
    for partition in range(100):
        producer.produce(way.topic, b"one", partition=partition)
    producer.flush()
    way.landed()
    assert len(way.files()) == 1
    assert len(way.rows()) == 100


def test_budgets_bound_a_run_and_the_rest_follows(new_way: NewWay, kafka: str) -> None:
    way = new_way(partitions=2)
    for partition in (0, 1):
        produce(kafka, way.topic, messages(100), partition=partition)
    feed = way.feed(plan={"max_records_per_run": 120, "max_records_per_batch": 50})
    report = way.landed(feed=feed)
    assert report.plan.planned == 120
    assert all(batch.span <= 50 for batch in report.plan.batches)
    way.landed(feed=feed)
    assert way.rows() == way.produced({0: (0, 100), 1: (0, 100)})


def test_an_unknown_topic_is_told_by_name(new_way: NewWay, tmp_path: Path) -> None:
    way = new_way()
    way.topic = "never-made"
    with pytest.raises(TopicUnknown, match="'never-made'"):
        way.land()


def test_odd_topic_names_land_where_readers_look(new_way: NewWay, kafka: str) -> None:
    for name in ("_hidden", ".dotted", "CamelCase_and.dots-42"):
        way = new_way(name=name)
        produce(kafka, way.topic, messages(4))
        way.landed()
        found = way.spark.read.parquet(f"{way.environ['HDFS_URL']}{way.root}/{way.name}")
        assert found.count() == 4
        assert way.reconciled().findings == ()
