"""DAG runs whose operators log in to HDFS by a keytab."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import Sandbox
from sandbox.clusters.kerberos import ROOT, Kerberos
from tests.support.airflow_place import AirflowPlace, a_feed
from tests.support.hdfs_clusters import HdfsView
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import create_topic

FEED = "ticketed"
COUNT = 3_000
FEEDS = {
    FEED: a_feed(
        FEED,
        target={"root": f"{ROOT}/{FEED}", "replication": 1, "connection": "webhdfs_kerberos"},
        spark={"connection": "spark_kerberos", "pool": "spark_local"},
    )
}
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def cluster(sandbox: Sandbox) -> Kerberos:
    sandbox.up(only=["kerberos"])  # before Airflow, which is told of its connections
    found = sandbox.clusters["kerberos"]
    assert isinstance(found, Kerberos)
    return found


@pytest.fixture(scope="module")
def place(
    sandbox: Sandbox, cluster: Kerberos, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AirflowPlace]:
    folder = tmp_path_factory.mktemp("feeds")
    no_tickets = {"KRB5CCNAME": f"FILE:{folder / 'no-tickets'}"}
    settings = {**cluster.environment, **no_tickets}
    sandbox.airflow.settings.update(settings)
    place = AirflowPlace(sandbox, folder, FEEDS)
    yield place
    place.rest.close()
    for key in ("TALLYSTICK_FEEDS", *settings):
        del sandbox.airflow.settings[key]


def test_a_run_and_a_reconciliation_by_keytab(place: AirflowPlace, cluster: Kerberos) -> None:
    create_topic(place.kafka, FEED)
    produce(place.kafka, FEED, messages(COUNT))
    place.start(f"ingest_{FEED}").succeeds()
    view = HdfsView(cluster.family, lambda: cluster.namenode)
    assert view.rows(f"{ROOT}/{FEED}") == place.produced(FEED, {0: COUNT})
    place.start(f"reconcile_{FEED}").succeeds()
