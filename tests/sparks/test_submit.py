"""Each supported Spark by spark-submit: it lands, finds what it can't read, and reads in full."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.finding_codes import Level
from tallystick.domain.verdicts import Verdict
from tallystick.spark.installed_spark import require_spark
from tallystick.spark.submit_runner import SubmitRunner
from tallystick.workflows.landing.run import RunReport
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.sparks.conftest import PINS, OneSpark
from tests.support.kafka_producers import AWKWARD, NANOSECONDS, Message, messages, produce
from tests.support.kafka_topics import ANY_TIME_FOR_EVER, create_topic
from tests.support.spark_place import APPLICATION, PLACE
from tests.support.whole_way import Way, environ_of

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def runner(one_spark: OneSpark, tmp_path: Path) -> Any:
    program = tmp_path / "spark-submit"
    program.write_text(
        f"#!/bin/sh\nexport SPARK_HOME={one_spark.home} PYSPARK_PYTHON={sys.executable}\n"
        'exec "$SPARK_HOME/bin/spark-submit" "$@"\n'
    )
    program.chmod(0o755)
    place = replace(PLACE, jars=one_spark.jars, spark_submit=str(program))
    require_spark(place, {"SPARK_HOME": str(one_spark.home)}, where="connection c")
    return SubmitRunner(place, application=APPLICATION, feed_conf={}, kafka_secrets={})


@pytest.fixture
def environ(kafka: str, hdfs: Any, ledger_dsn: str) -> Mapping[str, str]:
    return environ_of(kafka, hdfs, ledger_dsn)


def told(report: RunReport) -> list[str]:
    return [type(each).__name__ for each in report.errors]


def test_it_lands_reads_in_full_and_names_the_record_that_it_cannot_read(
    one_spark: OneSpark, runner: Any, environ: Mapping[str, str], kafka: str
) -> None:
    way = Way(create_topic(kafka, partitions=2, config=ANY_TIME_FOR_EVER), environ)
    produce(kafka, way.topic, AWKWARD, partition=1)
    produce(kafka, way.topic, messages(300), partition=0)

    way.landed(runner)

    both = {0: (0, 300), 1: (0, len(AWKWARD))}
    assert way.rows() == way.produced(both)
    with way.services(runner) as services:
        report = reconcile(services, Level.L3)
    assert (report.verdict, list(report.findings)) == (Verdict.PROVEN_OK, [])
    produce(kafka, way.topic, [Message(b"bad", timestamp_ms=NANOSECONDS), *messages(20)])

    first, second, third = (way.land(runner) for _ in range(3))

    assert [told(each) for each in (first, second, third)] == [
        ["ApplicationFailed"],
        ["RecordsUnreadable"],
        [],
    ]
    assert [(each.from_offset, each.until_offset) for each in second.findings] == [(300, 301)]
    offsets = [each.offset for each in way.rows() if each.partition == 0]
    assert offsets == [*range(300), *range(301, 321)]


def test_each_spark_with_a_connector_is_pinned() -> None:
    assert sorted(PINS) == ["3.5", "4.0", "4.1", "4.2"]
