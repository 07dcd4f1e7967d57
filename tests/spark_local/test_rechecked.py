"""recheck.py on real services: WebHDFS, a broker, and files that Spark has written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import recheck
from tallystick.domain.identities import FeedName
from tallystick.ledger.exporting import exported
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import report_of, store_report
from tests.support.kafka_producers import AWKWARD, TransactionalProducer, messages, produce
from tests.support.kafka_topics import create_topic
from tests.support.whole_way import Way, environ_of


@pytest.fixture
def way(kafka: str, hdfs: Any, ledger_dsn: str, spark: SparkSession) -> Way:
    """Awkward records in one partition, an aborted transaction in the other."""
    any_time = {"message.timestamp.after.max.ms": str(2**63 - 1)}
    topic = create_topic(kafka, partitions=2, config=any_time)
    produce(kafka, topic, AWKWARD, partition=0)
    producer = TransactionalProducer(kafka, topic)
    producer.commit(messages(10), partition=1).abort(messages(9, of="aborted"), partition=1)
    producer.commit(messages(10), partition=1)
    environ = environ_of(kafka, hdfs, ledger_dsn)
    way = Way(topic, environ, spark)
    way.landed()
    return way


@pytest.fixture
def rechecked(
    way: Way, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[[], tuple[int, list[str]]]:
    """The exit code, and what is said, after a reconcile has stored its report."""

    def run() -> tuple[int, list[str]]:
        with way.services() as services:
            store_report(services, report_of(services, reconcile(services)))
        lines = [each.line for each in exported(way.environ["LEDGER_DSN"], FeedName(way.name))]
        export = tmp_path / "export.jsonl"
        export.write_text("".join(f"{each}\n" for each in lines))
        assert json.loads(lines[0])["feed"] == way.name
        url = way.environ["WEBHDFS_URL"].removeprefix("http://")
        servers = f"bootstrap.servers={way.environ['KAFKA_BOOTSTRAP_SERVERS']}"
        capsys.readouterr()
        code = recheck.main(str(export), f"webhdfs://{url}", servers)
        return code, capsys.readouterr().out.splitlines()[1:]

    return run


def test_a_landed_feed_is_the_logs_records_in_hdfs(
    way: Way, rechecked: Callable[[], tuple[int, list[str]]]
) -> None:
    code, said = rechecked()

    healthy = [f"{way.topic}-{each}: PROVEN_OK, the report: PROVEN_OK" for each in (0, 1)]
    assert (code, said) == (0, healthy), "\n".join(said)
    with way.services() as services:
        [gone, *_] = services.ledger.directories(services.feed_name)
        services.store.delete(f"{gone.path}/{way.files()[0]}")
    code, said = rechecked()
    assert code == 0, "\n".join(said)
    assert any("PROVEN_LOSS, the report: PROVEN_LOSS" in each for each in said), "\n".join(said)
