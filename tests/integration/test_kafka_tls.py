"""A Kafka behind TLS and a password, by the command line: landed, proven, and no password shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sandbox import Sandbox
from sandbox.clusters.kafka_tls import USER, KafkaTls
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import create_topic
from tests.support.sandbox_fixtures import running
from tests.support.secret_search import assert_hidden, hdfs_texts, ledger_texts, watched
from tests.support.whole_way import Way, environ_of
from tests.trouble.command import Command, Folder

COUNT = 3000


@pytest.fixture(scope="module")
def guarded(sandbox: Sandbox) -> Iterator[KafkaTls]:
    with running(sandbox, KafkaTls) as found:
        yield found


@pytest.fixture
def way(guarded: KafkaTls, hdfs: Any, spark_connect: str, ledger_dsn: str) -> Way:
    servers = guarded.broker.address
    way = Way(create_topic(servers), environ_of(servers, hdfs, ledger_dsn, spark_connect))
    produce(servers, way.topic, messages(COUNT), partition=0)
    return way


@pytest.fixture
def run(way: Way, guarded: KafkaTls, spark_connect: str, tmp_path: Path) -> Callable[..., Command]:
    """Runs a command on the feed, with the connection that the sandbox gives."""
    folder = Folder(tmp_path / "feeds")
    folder.write(way.feed())
    placed = tmp_path / "kafka.properties"
    spark = {
        "conn_type": "spark_connect",
        "host": spark_connect,
        "extra": {"kafka-secrets": str(placed)},
    }
    environ = dict(way.environ) | {
        "AIRFLOW_CONN_KAFKA_DEFAULT": guarded.connections()["AIRFLOW_CONN_KAFKA_TLS"],
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(spark),
    }

    def run(*arguments: str) -> Command:
        return Command(folder, environ, *arguments).ended()

    placed.touch(mode=0o600)
    placed.write_text(run("kafka-secrets", way.name).out, encoding="utf-8")
    return run


def test_a_guarded_topic_lands_and_is_proven_without_a_password_to_be_seen(
    way: Way, run: Callable[..., Command], guarded: KafkaTls, sandbox: Sandbox
) -> None:
    web = way.environ["WEBHDFS_URL"]
    with watched(web, way.root) as watch:
        landed = run("land", way.name, "--json")
        reconciled = run("reconcile", way.name, "--level", "3", "--json")

    assert landed.code == 0, landed.err
    assert reconciled.code == 0, reconciled.err
    assert landed.document["batches"][0]["rows"] == COUNT
    assert way.rows() == way.produced({0: (0, COUNT)})
    texts = {
        "what land said": landed.out + landed.err,
        "what reconcile said": reconciled.out + reconciled.err,
        "an argument list": "\n".join(watch.arguments),
        "plan.json": "\n".join(watch.plans),
        "HDFS": "\n".join(hdfs_texts(web, way.root)),
        "the ledger": "\n".join(ledger_texts(way.environ["LEDGER_DSN"])),
        "the log of Spark's server": sandbox.spark_connect.log.read_text(),
    }
    assert "kafka.properties" in texts["plan.json"], "it names the place of the secret"
    assert_hidden(texts, guarded.broker.password(USER)[:16])
