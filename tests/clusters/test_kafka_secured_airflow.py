"""Airflow lands guarded topics: by a password and by a certificate, with spark-submit.

Nothing that Airflow keeps or shows holds the password, nor the key.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import Sandbox
from sandbox.clusters.kafka_tls import USER, KafkaTls
from tests.support.airflow_place import AirflowPlace, Run, a_feed
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_records import records_in
from tests.support.kafka_topics import create_topic
from tests.support.sandbox_fixtures import watched_sandbox
from tests.support.secret_search import assert_hidden, ledger_texts

COUNT = 500
# The feed, which is its topic too, and its connection.
FEEDS = {"by_password": "kafka_tls", "by_certificate": "kafka_mtls", "by_token": "kafka_oauth"}


@pytest.fixture(scope="module")
def own_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Apart from the test run's: its Airflow reads feeds of this module's own."""
    with watched_sandbox(tmp_path_factory.mktemp("guarded")) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def guarded(own_sandbox: Sandbox) -> KafkaTls:
    own_sandbox.up(only=[KafkaTls.name])
    found = own_sandbox.clusters[KafkaTls.name]
    assert isinstance(found, KafkaTls)
    for topic in FEEDS:
        create_topic(found.broker.address, topic)
        produce(found.broker.address, topic, messages(COUNT), partition=0)
    return found


@pytest.fixture(scope="module")
def place(
    own_sandbox: Sandbox, guarded: KafkaTls, tmp_path_factory: pytest.TempPathFactory
) -> AirflowPlace:
    feeds = {
        name: a_feed(
            name,
            source={"topic": name, "connection": connection},
            spark={"pool": "spark_local", "connection": "spark_submit"},
        )
        for name, connection in FEEDS.items()
    }
    return AirflowPlace(own_sandbox, tmp_path_factory.mktemp("feeds"), feeds)


@pytest.fixture(scope="module")
def runs(place: AirflowPlace) -> list[Run]:
    started = [place.start(f"ingest_{name}") for name in FEEDS]
    return [each.succeeds() for each in started]


def test_each_guarded_topic_is_landed_by_airflow(
    runs: list[Run], place: AirflowPlace, guarded: KafkaTls
) -> None:
    assert runs
    for feed in FEEDS:
        assert place.rows(feed) == records_in(guarded.broker.address, feed, {0: (0, COUNT)})


def test_airflow_keeps_and_shows_no_secret(
    runs: list[Run], place: AirflowPlace, guarded: KafkaTls, own_sandbox: Sandbox
) -> None:
    texts = {
        f"the log of {run.dag_id}, {task}": run.log(task) for run in runs for task in run.ran()
    }
    texts["Airflow's database"] = "\n".join(ledger_texts(own_sandbox.postgres.dsn("airflow")))
    texts["the ledger"] = "\n".join(ledger_texts(place.env["LEDGER_DSN"]))
    for log in own_sandbox.home.folder("logs").glob("*.log"):
        texts[f"the log {log.name}"] = log.read_text(errors="replace")
    assert "ingest_by_password" in texts["Airflow's database"]
    key = Path(guarded.properties("SSL")["ssl.key.location"]).read_text().splitlines()[5]
    password, secret = guarded.broker.password(USER)[:16], guarded.tokens.secret(USER)
    assert_hidden(texts, password, secret, key)
