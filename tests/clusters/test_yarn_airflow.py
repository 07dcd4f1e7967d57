"""DAG runs that land on YARN: one whose task is given up, and the one that comes after it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import Sandbox
from sandbox.clusters.yarn import Yarn
from tests.support.airflow_place import ROOT, AirflowPlace, a_feed, until
from tests.support.kafka_producers import produce
from tests.support.kafka_topics import create_topic
from tests.support.spark_clusters import HARD_TO_PACK, YARN_CONF, slow_messages

FEED = "yarned"
COUNT = 15_000
SPARK = {"connection": "spark_yarn_cluster", "conf": YARN_CONF, "pool": "spark_local"}
FEEDS = {FEED: a_feed(FEED, spark=SPARK, target={"root": ROOT, **HARD_TO_PACK})}
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def place(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowPlace]:
    sandbox.up(only=["hdfs"], beside=["yarn"])  # before Airflow, which is told of its connections
    place = AirflowPlace(sandbox, tmp_path_factory.mktemp("feeds"), FEEDS)
    yield place
    place.rest.close()
    del sandbox.airflow.settings["TALLYSTICK_FEEDS"]


def test_a_task_that_is_given_up_ends_its_application_and_another_run_lands_once(
    place: AirflowPlace, sandbox: Sandbox
) -> None:
    cluster = sandbox.clusters["yarn"]
    assert isinstance(cluster, Yarn)

    def states() -> list[str]:
        told = cluster.resource_manager.said("apps") or {}
        found = (told.get("apps") or {}).get("app", [])
        mine = [each for each in found if each["name"].startswith(f"tallystick {FEED} ")]
        return [each["state"] for each in sorted(mine, key=lambda each: str(each["id"]))]

    create_topic(place.kafka, FEED)
    produce(place.kafka, FEED, slow_messages(COUNT))
    run = place.start(f"ingest_{FEED}")
    until("the application runs", lambda: states() == ["RUNNING"])
    path = f"/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/batch.land/0"
    place.rest.patch(path, {"new_state": "failed"}, update_mask="new_state")
    until("the application is killed", lambda: states() == ["KILLED"])
    assert run.end() == "failed"

    def has_landed() -> bool:
        place.start(f"ingest_{FEED}").succeeds()
        return bool(place.rows(FEED))

    until("another run has adopted the batch", has_landed)
    assert states() == ["KILLED", "FINISHED"]
    assert place.rows(FEED) == place.produced(FEED, {0: COUNT})
    place.start(f"reconcile_{FEED}").succeeds()
