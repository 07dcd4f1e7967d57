"""A ledger is lost after real landings; it comes back from HDFS, and no broker is asked for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.identities import Owner
from tallystick.domain.verdicts import Verdict
from tallystick.settings.connections import connection_in
from tallystick.wiring.reading import read_feed
from tallystick.workflows.rebuilding.rebuild import rebuild
from tallystick.workflows.repairing.repair import repair_feed
from tests.support.kafka_producers import TransactionalProducer, messages, produce
from tests.support.kafka_topics import create_topic, recreate_topic
from tests.support.ledger_account import account_of
from tests.support.whole_way import Way, environ_of


@pytest.fixture
def way(kafka: str, hdfs: Any, ledger_databases: Callable[[], str], spark: SparkSession) -> Way:
    environ = environ_of(kafka, hdfs, ledger_databases())
    return Way(create_topic(kafka, partitions=2), environ, spark)


class Ledger:
    """The ledger of a way."""

    def __init__(self, way: Way) -> None:
        self.dsn = way.environ["LEDGER_DSN"]


def test_a_lost_ledger_comes_back_from_hdfs(
    way: Way, kafka: str, ledger_databases: Callable[[], str], spark: SparkSession
) -> None:
    grow(way, kafka)
    rows = (way.rows(1), way.rows(2))
    before = account_of(Ledger(way), way.name)
    # Nobody answers there: a rebuild must not ask.
    away = {"KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1", "LEDGER_DSN": ledger_databases()}
    lost = replace(way, environ={**way.environ, **away})
    with lost.services() as services:
        report = rebuild(services)
    assert report.is_whole, report.left_out
    assert [each.notes for each in report.entered if each.notes] == []
    assert account_of(Ledger(lost), way.name) == before
    back = replace(lost, environ={**lost.environ, "KAFKA_BOOTSTRAP_SERVERS": kafka})
    assert back.landed().plan.all_batches == ()
    assert (back.rows(1), back.rows(2)) == rows
    assert back.reconciled().verdict is Verdict.PROVEN_OK
    read = read_feed(
        spark, way.feed(), connection_of=lambda conn_id: connection_in(back.environ, conn_id)
    )
    assert read.count() == len(rows[0]) + len(rows[1])
    assert read.select("value").distinct().count() == len(
        {each.value for each in (*rows[0], *rows[1])}
    )


def grow(way: Way, kafka: str) -> None:
    """Transactions, a repair, a second life of the topic: all published."""
    produce(kafka, way.topic, messages(300), partition=0)
    producer = TransactionalProducer(kafka, way.topic)
    producer.commit(messages(20), partition=1).abort(messages(15), partition=1)
    producer.commit(messages(5), partition=1)
    way.landed()
    produce(kafka, way.topic, messages(40), partition=0)
    way.landed()
    with way.services() as services:
        oldest = services.ledger.files(services.feed_name)[0]
        assert services.store.delete(f"{BatchPath.of(oldest.plan)}/{oldest.file.name}")
    way.reconciled()
    with way.services() as services:
        numbers = [each.finding_id for each in services.ledger.findings(services.feed_name)]
        mended = repair_feed(services, numbers, Owner("repair"))
    assert not mended.errors
    assert mended.closed
    recreate_topic(kafka, way.topic, partitions=2)
    for partition in (0, 1):
        produce(kafka, way.topic, messages(30), partition=partition)
    way.landed()
