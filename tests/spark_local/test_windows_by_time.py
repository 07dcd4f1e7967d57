"""Directories by record time, from a real time index: what a run that catches up leaves in HDFS."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tests.support.kafka_producers import Message, produce
from tests.support.kafka_topics import create_topic
from tests.support.whole_way import Way, environ_of

HOUR = timedelta(hours=1)


@pytest.fixture
def way(kafka: str, hdfs: Any, ledger_dsn: str, spark: SparkSession) -> Way:
    environ = environ_of(kafka, hdfs, ledger_dsn)
    return Way(create_topic(kafka, partitions=2, config={"retention.ms": "-1"}), environ, spark)


def message(at: datetime) -> Message:
    return Message(f"{at:%H:%M}".encode(), timestamp_ms=int(at.timestamp() * 1000))


def test_eleven_hours_that_one_run_catches_up_lie_under_their_own_hours(
    way: Way, kafka: str
) -> None:
    start = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - 12 * HOUR
    hours = [start + number * HOUR for number in range(11)]
    plain = [at + timedelta(minutes=minute) for at in hours for minute in (0, 20, 59)]
    # Between the sixth hour's records comes one of the third: it goes with those around it.
    late = hours[2] + timedelta(minutes=30)
    produce(kafka, way.topic, map(message, [*plain[:16], late, *plain[16:]]))
    produce(kafka, way.topic, map(message, hours[::5]), partition=1)
    feed = way.feed(plan={"until": "window_end"})

    way.landed(window=Window(hours[9], hours[9] + HOUR), feed=feed)

    expected = {at: [p for p in plain if at <= p < at + HOUR] for at in hours[:10]}
    expected[hours[5]] = sorted([*expected[hours[5]], late])
    assert way.times_by_hour(partition=0) == expected
    assert way.times_by_hour(partition=1) == {at: [at] for at in hours[:10:5]}

    assert way.landed(window=Window(hours[3], hours[4]), feed=feed).batches == []
    way.landed(window=Window(hours[10], hours[10] + HOUR), feed=feed)

    assert way.times_by_hour(partition=0) == expected | {hours[10]: plain[-3:]}
    assert way.times_by_hour(partition=1) == {at: [at] for at in hours[::5]}
    assert way.reconciled().verdict is Verdict.PROVEN_OK
