"""What Spark can't read of a real log is set aside by the offset; all around it is landed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sandbox.stack import Sandbox
from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.verdicts import Verdict
from tallystick.errors import ApplicationFailed
from tallystick.spark.submit_runner import SubmitRunner
from tallystick.workflows.landing.run import RunReport
from tests.support.kafka_producers import NANOSECONDS, Message, messages, produce
from tests.support.kafka_topics import ANY_TIME, create_topic
from tests.support.spark_place import APPLICATION, PLACE
from tests.support.whole_way import SessionRunner, Way, environ_of

ZSTD = {"compression.type": "zstd"}


@pytest.fixture
def environ(kafka: str, hdfs: Any, ledger_dsn: str) -> Mapping[str, str]:
    return environ_of(kafka, hdfs, ledger_dsn)


def told(report: RunReport) -> list[str]:
    return [type(each).__name__ for each in report.errors]


def test_one_time_in_nanoseconds_among_two_thousand_records_holds_up_itself_alone(
    environ: Mapping[str, str], kafka: str, spark: SparkSession
) -> None:
    way = Way(create_topic(kafka, partitions=2, config=ANY_TIME), environ, spark)
    produce(kafka, way.topic, messages(500), partition=1)
    bad = Message(b"in nanoseconds", timestamp_ms=NANOSECONDS)
    produce(kafka, way.topic, [*messages(1500), bad, *messages(500)], partition=0)

    first, second, third = way.land(), way.land(), way.land()

    assert [told(each) for each in (first, second, third)] == [
        ["ApplicationFailed"],
        ["RecordsUnreadable"],
        [],
    ]
    around = [each for each in range(2001) if each != 1500]
    assert [each.offset for each in way.rows() if each.partition == 0] == around
    assert [each.offset for each in way.rows() if each.partition == 1] == list(range(500))
    [found] = second.findings
    assert (found.partition, found.from_offset, found.until_offset) == (0, 1500, 1501)
    assert found.cause == (
        "Spark can't read the record at offset 1500, and reads what is beside it:"
        " java.lang.ArithmeticException: long overflow."
    )
    report = way.reconciled()
    assert report.verdict is Verdict.UNKNOWN
    assert [(each.code.value, each.from_offset) for each in report.findings] == [("A11", 1500)]


def test_a_corrupt_batch_holds_up_itself_alone(
    environ: Mapping[str, str], kafka: str, spark: SparkSession, sandbox: Sandbox
) -> None:
    way = Way(create_topic(kafka, partitions=1), environ, spark)
    produce(kafka, way.topic, messages(20))
    produce(kafka, way.topic, [Message(b"a needle in the log"), Message(b"beside it")])
    produce(kafka, way.topic, messages(20))
    with way.services() as services:
        [head] = services.broker.batch_heads(way.topic, {0: 20}).values()
    assert (head.base_offset, head.until_offset) == (20, 22), "one batch holds both records"
    damage(sandbox.directory, way.topic, b"a needle")

    way.land()
    second = way.land()
    way.landed()

    assert told(second) == ["RecordsUnreadable"]
    assert [each.offset for each in way.rows()] == [*range(20), *range(22, 42)]
    assert [(each.from_offset, each.until_offset) for each in second.findings] == [
        (20, 21),
        (21, 22),
    ]
    assert all("corrupt" in each.cause.lower() for each in second.findings)


@pytest.mark.timeout(600)
def test_a_record_too_big_for_the_memory_holds_up_itself_alone(
    environ: Mapping[str, str], kafka: str, spark: SparkSession
) -> None:
    """Driver and executor are one process here, so nothing of the application survives it.

    Kafka's client holds a value twice while it reads it: that is more than the memory, always.
    """
    way = Way(create_topic(kafka, partitions=1), environ, spark)
    whole = {"message.max.bytes": 1_000_000_000, "batch.size": 1_000_000_000}
    produce(kafka, way.topic, [*messages(1), Message(bytes(300_000_000))], config=ZSTD | whole)
    produce(kafka, way.topic, messages(2))
    small = replace(PLACE, conf={**PLACE.conf, "spark.driver.memory": "480m"})
    runner: Any = SubmitRunner(small, application=APPLICATION, feed_conf={}, kafka_secrets={})
    with way.services() as services:
        [head] = services.broker.batch_heads(way.topic, {0: 1}).values()
    assert (head.base_offset, head.until_offset) == (0, 2), "one batch holds it and another record"

    # Each death takes as long as a start and a full memory; the second landing dies of the record.
    way.land(SessionRunner(spark, before=fails))
    second = way.land(runner)
    third = way.land(runner)

    assert (told(second), told(third)) == (["RecordsUnreadable"], [])
    assert [each.from_offset for each in second.findings] == [1]
    assert [each.offset for each in way.rows()] == [0, 2, 3]


def fails(plan: LandingPlan) -> None:
    raise ApplicationFailed(plan.batch_id, "application", "an executor was lost")


def damage(directory: Path, topic: str, needle: bytes) -> None:
    """Flip a bit of the value, as a bad disk does; its batch has a wrong checksum from then on."""
    [log] = directory.rglob(f"{topic}-0/*.log")
    with log.open("r+b") as file:
        place = log.read_bytes().index(needle)
        file.seek(place)
        file.write(bytes([needle[0] ^ 1]))
