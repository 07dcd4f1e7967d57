"""A secured Kafka and a standalone Spark: the secrets lie on the nodes, and nothing is shipped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from sandbox import Sandbox
from sandbox.clusters.standalone import Standalone
from tallystick.ports.spark_runner import LandingOrder
from tallystick.spark.kafka_access import SECRETS_FILE, access_from, kafka_access, secrets_text
from tallystick.spark.place import SparkPlace
from tallystick.spark.submit_runner import SubmitRunner
from tests.spark_local.planner import Planner, packed
from tests.support.kafka_topics import create_topic
from tests.support.landed_files import put, rows_in
from tests.support.sandbox_fixtures import running
from tests.support.sasl_kafka import SaslKafka
from tests.support.spark_place import APPLICATION, JARS, PLACE

CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": PLACE.conf["spark.driver.extraJavaOptions"],
    "spark.executor.memory": "600m",
    "spark.ui.enabled": "false",
}


@pytest.fixture(scope="module")
def standalone(sandbox: Sandbox) -> Iterator[Standalone]:
    """A master with one worker."""
    with running(sandbox, Standalone, "hdfs") as found:
        yield found


def test_secrets_that_lie_on_the_nodes_let_a_standalone_cluster_land(
    kafka: str, hdfs: Any, secured: SaslKafka, standalone: Standalone, tmp_path: Path
) -> None:
    file = tmp_path / "kafka-secrets.properties"
    file.touch(mode=0o600)
    file.write_text(secrets_text(kafka_access(secured.properties).secrets), encoding="utf-8")
    place = SparkPlace(
        standalone.master.address,
        jars=JARS,
        conf=CONF,
        spark_submit=PLACE.spark_submit,
        kafka_secrets=str(file),
    )
    topic = create_topic(secured.address)
    writer = Producer(secured.properties)
    writer.produce(topic, value=b"let in", partition=0)
    assert writer.flush(30) == 0
    access = access_from(place, secured.properties, where="connection spark")
    planner = Planner(kafka, hdfs.hdfs_url, hdfs.webhdfs_url)
    plan = planner.plan(topic, [packed(topic, {0: (0, 1)})], kafka_options=access.options)
    path = f"{planner.directory(plan).removesuffix('/data')}/plan.json"
    text, uri = plan.to_json(), f"{planner.hdfs_url}{path}"
    put(planner.webhdfs_url, path, text.encode(), "root")
    order = LandingOrder("orders", plan.batch_id, plan.attempt_id, uri, plan_text=text)

    SubmitRunner(place, application=APPLICATION, feed_conf={}, kafka_secrets=access.secrets).run(
        order, started=lambda _: None
    )

    [row] = rows_in(planner.webhdfs_url, planner.directory(plan))
    assert row.value == b"let in"
    shipped = {each.name for each in standalone.worker.folder.rglob("*")}
    assert any(name.endswith(".jar") for name in shipped)
    assert SECRETS_FILE not in shipped
    assert str(file) in json.dumps(dict(access.options))
