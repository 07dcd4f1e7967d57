"""Airflow lands guarded topics by each engine, into each HDFS, with a ledger that takes TLS alone.

A task that is given up ends its application on YARN. Nothing that Airflow, Spark, YARN, HDFS or the
ledger keeps or shows holds a password, nor a key.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox import Sandbox
from sandbox.clusters.ha import Ha
from sandbox.clusters.kafka_tls import USER, KafkaTls
from sandbox.clusters.kerberos import ROOT as KERBEROS_ROOT
from sandbox.clusters.kerberos import Kerberos
from sandbox.clusters.ledger_tls import DATABASE, READER, RUNNER, LedgerTls
from sandbox.clusters.yarn import Yarn
from tallystick.spark.kafka_access import kafka_access, secrets_text
from tests.support.airflow_place import ROOT, AirflowPlace, Run, a_feed, until
from tests.support.busy import BUSY_SECONDS, READER_SETTING
from tests.support.hdfs_clusters import HdfsView
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_records import Record, records_in
from tests.support.kafka_topics import create_topic
from tests.support.sandbox_fixtures import watched_sandbox
from tests.support.secret_search import (
    assert_hidden,
    database_texts,
    hdfs_texts,
    ledger_texts,
    watched,
)
from tests.support.spark_clusters import HARD_TO_PACK, STANDALONE_CONF, YARN_CONF, slow_messages

COUNT = 500
CLUSTERS = ("kafka-tls", "standalone", "yarn", "ha", "kerberos", "ledger-tls")
METRICS_TOKEN = "planted-for-the-metrics"
KERBEROS_TARGET = {"root": f"{KERBEROS_ROOT}/by_keytab", "connection": "webhdfs_kerberos"}
# The feed, which is its topic too: its connections for Kafka and for Spark.
FEEDS = {
    "by_password": ("kafka_tls", "spark_submit"),
    "by_certificate": ("kafka_mtls", "spark_connect_placed"),
    "by_token": ("kafka_oauth", "spark_yarn_cluster"),
    "on_nodes": ("kafka_tls", "spark_standalone_placed"),
    "on_two_name_nodes": ("kafka_tls", "spark_ha"),
    "by_keytab": ("kafka_tls", "spark_kerberos"),
}
GIVEN_UP, GIVEN_UP_COUNT = "given_up", 15_000
"""A feed of the open Kafka whose landing takes long enough to be killed in mid-write."""
CONF: Mapping[str, Mapping[str, str]] = {
    "spark_connect_placed": {},
    "spark_yarn_cluster": YARN_CONF,
    "spark_standalone_placed": STANDALONE_CONF,
}
ENGINE_SECONDS = 600.0
"""Six engines start one after another, each a JVM or more."""
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def own_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Apart from the test run's: its Airflow reads feeds and a ledger of this module's own."""
    with watched_sandbox(tmp_path_factory.mktemp("guarded")) as sandbox:
        # Before Airflow, which is told of their connections.
        sandbox.up(only=["hdfs"], beside=CLUSTERS)
        yield sandbox


@pytest.fixture(scope="module")
def guarded(own_sandbox: Sandbox) -> KafkaTls:
    found = own_sandbox.clusters["kafka-tls"]
    assert isinstance(found, KafkaTls)
    for topic in FEEDS:
        create_topic(found.broker.address, topic)
        produce(found.broker.address, topic, messages(COUNT), partition=0)
    return found


def placed(properties: Mapping[str, str], folder: Path, name: str) -> str:
    """The file that an administrator places on every node."""
    file = folder / name
    file.touch(mode=0o600)
    file.write_text(secrets_text(kafka_access(properties).secrets), encoding="utf-8")
    return str(file)


@pytest.fixture(scope="module")
def place(
    own_sandbox: Sandbox, guarded: KafkaTls, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AirflowPlace]:
    folder, events = tmp_path_factory.mktemp("feeds"), tmp_path_factory.mktemp("events")
    logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": events.as_uri()}
    standalone = json.loads(
        own_sandbox.clusters["standalone"].connections()["AIRFLOW_CONN_SPARK_STANDALONE"]
    )
    standalone["extra"]["kafka-secrets"] = placed(guarded.properties(), events, "nodes.properties")
    own_sandbox.up(only=["spark-connect"])
    connect = {
        "conn_type": "spark_connect",
        "host": own_sandbox.spark_connect.address,
        "extra": {"kafka-secrets": placed(guarded.properties("SSL"), events, "server.properties")},
    }
    kerberos = own_sandbox.clusters["kerberos"]
    assert isinstance(kerberos, Kerberos)
    own_sandbox.airflow.settings |= {
        **kerberos.environment,
        "KRB5CCNAME": f"FILE:{folder / 'no-tickets'}",
        READER_SETTING: str(BUSY_SECONDS),
        "AIRFLOW_CONN_SPARK_STANDALONE_PLACED": json.dumps(standalone),
        "AIRFLOW_CONN_SPARK_CONNECT_PLACED": json.dumps(connect),
        "AIRFLOW_CONN_TALLYSTICK_METRICS": json.dumps(
            {"conn_type": "generic", "password": METRICS_TOKEN}
        ),
    }

    def feed(name: str, kafka: str, spark: str) -> dict[str, Any]:
        conf = CONF.get(spark, {})
        target: dict[str, Any] = {"root": ROOT, "replication": 1}
        if spark == "spark_ha":
            target["connection"] = "webhdfs_ha"
        if spark == "spark_kerberos":
            target |= KERBEROS_TARGET
        return a_feed(
            name,
            source={"topic": name, "connection": kafka},
            target=target,
            spark={
                "pool": "spark_local",
                "connection": spark,
                "conf": dict(conf) if spark == "spark_connect_placed" else {**conf, **logged},
            },
        )

    feeds = {name: feed(name, *connections) for name, connections in FEEDS.items()}
    feeds[GIVEN_UP] = a_feed(
        GIVEN_UP,
        spark={"connection": "spark_yarn_cluster", "conf": YARN_CONF, "pool": "spark_local"},
        target={"root": ROOT, **HARD_TO_PACK},
    )
    with closing(AirflowPlace(own_sandbox, folder, feeds)) as place:
        yield place


@pytest.fixture(scope="module")
def shown(place: AirflowPlace) -> dict[str, str]:
    """What processes had for arguments and environment, and what plans said, while it ran."""
    return {}


@pytest.fixture(scope="module")
def runs(place: AirflowPlace, shown: dict[str, str]) -> list[Run]:
    with watched(place.env["WEBHDFS_URL"], ROOT) as watch:
        started = [place.start(f"ingest_{name}") for name in FEEDS]
        ended = [each.succeeds(ENGINE_SECONDS) for each in started]
    shown |= {
        "an argument list": "\n".join(watch.arguments),
        "an environment of Spark's": "\n".join(watch.environments),
        "plan.json": "\n".join(watch.plans),
    }
    return ended


def seen_rows(place: AirflowPlace, sandbox: Sandbox, feed: str) -> list[Record]:
    """Every row that lies in the HDFS of the feed."""
    match FEEDS[feed][1]:
        case "spark_ha":
            return views(sandbox)["ha"].rows(f"{ROOT}/{feed}")
        case "spark_kerberos":
            return views(sandbox)["kerberos"].rows(KERBEROS_TARGET["root"])
        case _:
            return place.rows(feed)


def views(sandbox: Sandbox) -> Mapping[str, HdfsView]:
    """The HDFS beside the usual one, each as its superuser sees it."""
    ha, kerberos = sandbox.clusters["ha"], sandbox.clusters["kerberos"]
    assert isinstance(ha, Ha)
    assert isinstance(kerberos, Kerberos)
    return {
        ha.name: HdfsView(ha.family, ha.active),
        kerberos.name: HdfsView(kerberos.family, lambda: kerberos.namenode),
    }


def test_each_engine_lands_its_guarded_topic_through_airflow(
    runs: list[Run], place: AirflowPlace, guarded: KafkaTls, own_sandbox: Sandbox
) -> None:
    assert len(runs) == len(FEEDS)
    for feed in FEEDS:
        rows = seen_rows(place, own_sandbox, feed)
        assert rows == records_in(guarded.broker.address, feed, {0: (0, COUNT)}), feed


def test_reconciling_on_each_engine_proves_it(runs: list[Run], place: AirflowPlace) -> None:
    for each in [place.start(f"reconcile_{name}") for name in FEEDS]:
        each.succeeds(ENGINE_SECONDS)


def test_a_task_that_is_given_up_ends_its_application_and_another_run_lands_once(
    runs: list[Run], place: AirflowPlace, own_sandbox: Sandbox
) -> None:
    cluster = own_sandbox.clusters["yarn"]
    assert isinstance(cluster, Yarn)

    def states() -> list[str]:
        told = cluster.resource_manager.said("apps") or {}
        found = (told.get("apps") or {}).get("app", [])
        mine = [each for each in found if each["name"].startswith(f"tallystick {GIVEN_UP} ")]
        return [each["state"] for each in sorted(mine, key=lambda each: str(each["id"]))]

    create_topic(place.kafka, GIVEN_UP)
    produce(place.kafka, GIVEN_UP, slow_messages(GIVEN_UP_COUNT))
    run = place.start(f"ingest_{GIVEN_UP}")
    until("the application runs", lambda: states() == ["RUNNING"])
    path = f"/dags/{run.dag_id}/dagRuns/{run.run_id}/taskInstances/batch.land/0"
    place.rest.patch(path, {"new_state": "failed"}, update_mask="new_state")
    until("the application is killed", lambda: states() == ["KILLED"])
    assert run.end() == "failed"

    def has_landed() -> bool:
        place.start(f"ingest_{GIVEN_UP}").succeeds()
        return bool(place.rows(GIVEN_UP))

    until("another run has adopted the batch", has_landed)
    assert states() == ["KILLED", "FINISHED"]
    assert place.rows(GIVEN_UP) == place.produced(GIVEN_UP, {0: GIVEN_UP_COUNT})


def test_nobody_keeps_or_shows_a_secret(
    runs: list[Run],
    place: AirflowPlace,
    shown: dict[str, str],
    guarded: KafkaTls,
    own_sandbox: Sandbox,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    ledger, yarn = own_sandbox.clusters["ledger-tls"], own_sandbox.clusters["yarn"]
    assert isinstance(ledger, LedgerTls)
    assert isinstance(yarn, Yarn)
    texts = shown | {
        f"the log of {run.dag_id}, {task}": run.log(task) for run in runs for task in run.ran()
    }
    texts["Airflow's database"] = "\n".join(database_texts(own_sandbox.postgres.dsn("airflow")))
    texts["the ledger"] = "\n".join(ledger_texts(ledger.server.dsn(DATABASE, role=READER)))
    texts["HDFS, with YARN's logs"] = "\n".join(hdfs_texts(place.env["WEBHDFS_URL"], "/"))
    for name, view in views(own_sandbox).items():
        texts[f"the HDFS of {name}"] = "\n".join(view.texts())
    texts["YARN's page"] = json.dumps(yarn.resource_manager.said("apps"))
    texts |= pages(place)
    for log in own_sandbox.home.folder("logs").glob("*.log"):
        texts[f"the log {log.name}"] = log.read_text(errors="replace")
    events = [
        path
        for path in tmp_path_factory.getbasetemp().glob("events*/**/*")
        if path.is_file() and path.suffix != ".properties"
    ]
    texts["Spark's event logs"] = "\n".join(path.read_text(errors="replace") for path in events)
    # Each place was looked at while it had something to show.
    assert "ingest_by_password" in texts["Airflow's database"]
    assert "org.apache.spark.deploy.SparkSubmit" in texts["an argument list"]
    assert "kafka.ssl.truststore.type" in texts["plan.json"]
    assert "SPARK_" in texts["an environment of Spark's"]
    assert "by_token" in texts["YARN's page"]
    assert "SparkListenerApplicationEnd" in texts["Spark's event logs"]
    assert "by_certificate" in texts["the page /metrics"]

    key = Path(guarded.properties("SSL")["ssl.key.location"]).read_text().splitlines()[5]
    assert_hidden(
        texts,
        guarded.broker.password(USER)[:16],
        guarded.tokens.secret(USER),
        key,
        ledger.server.password(RUNNER),
        METRICS_TOKEN,
    )


def pages(place: AirflowPlace) -> dict[str, str]:
    """What Tallystick's pages and metrics say of the feeds."""
    env = place.env
    login = {"username": env["AIRFLOW_USER"], "password": env["AIRFLOW_PASSWORD"]}
    paths = ["/", "/api/feeds"]
    paths += [f"{part}/feeds/{name}/reports" for name in FEEDS for part in ("", "/api")]
    with httpx.Client(base_url=env["AIRFLOW_URL"], trust_env=False, timeout=30) as client:
        token = client.post("/auth/token", json=login).raise_for_status().json()["access_token"]
        found = {"/metrics": METRICS_TOKEN} | dict.fromkeys(paths, token)
        return {
            f"the page {path}": client.get(
                f"/tallystick{path}",
                headers={"Authorization": f"Bearer {each}"},
                follow_redirects=True,
            )
            .raise_for_status()
            .text
            for path, each in found.items()
        }
