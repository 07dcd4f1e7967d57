"""The wheel with each release of Airflow: installed and used as docs/install.md says.

Kafka, HDFS, Spark and the ledger are the sandbox's; Airflow, its libraries and the package are not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyspark
import pytest

from sandbox.entry.system import ensure_java
from tests.installed.conftest import PINS, Installed, done
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import create_topic
from tests.support.ledger_server import OWNER_ROLE, LedgerServer
from tests.support.repository import DOCS, blocks_in, commands_in
from tests.support.sandbox_fixtures import HdfsPlace
from tests.support.spark_place import JARS

# The first one waits for the sandbox, too.
pytestmark = pytest.mark.timeout(900)

INSTALL = DOCS / "install.md"
PROGRAM = Path(__file__).with_name("one_run.py")
RECORDS = 50
TOPIC = "orders-of-the-installed"
"""In the document it has the feed's name: other modules fill a topic of that name on this Kafka."""
READER = "tallystick_reader"
"""The document's third role; the server of the tests has the other two."""
PARTS_OF_A_RUN = {"finish", "plan", "batch.land", "batch.commit_and_publish", "announce", "check"}


def block_with(text: str) -> str:
    """The one block of the document that has this text."""
    [found] = [each for each in blocks_in(INSTALL) if text in each]
    return found


@pytest.fixture(scope="module")
def topic(kafka: str) -> str:
    """The topic of the document's feed, with records in it."""
    create_topic(kafka, TOPIC, partitions=2)
    for partition in range(2):
        produce(kafka, TOPIC, messages(RECORDS), partition=partition)
    return kafka


@pytest.fixture(scope="module")
def installed(
    bare: Installed, topic: str, hdfs: HdfsPlace, spark_connect: str, ledger_server: LedgerServer
) -> Iterator[Installed]:
    """That environment with the document's files, the sandbox's services and an empty ledger."""
    web, spark = urlsplit(hdfs.webhdfs_url), urlsplit(spark_connect)
    database = f"installed_{bare.release.replace('.', '_')}"
    ledger_server.create(database)
    ledger_server.execute("postgres", f"CREATE ROLE {READER}")
    dsn = ledger_server.dsn(database, role=OWNER_ROLE)
    connections = {
        "kafka_default": {"conn_type": "kafka", "extra": {"bootstrap.servers": topic}},
        "webhdfs_default": {
            "conn_type": "webhdfs",
            "host": web.hostname,
            "port": web.port,
            "login": hdfs.user,
            "extra": {"fs": hdfs.hdfs_url},
        },
        "spark_default": {"conn_type": "spark_connect", "host": spark.hostname, "port": spark.port},
        "ledger_default": {"conn_type": "postgres", "extra": {"dsn": dsn}},
    }
    files = {
        "dags/feeds.py": block_with("airflow_dags()"),
        "dags/feed_problems.py": block_with("airflow_dag_problems()"),
        # Each release lands in a directory of its own.
        "feeds/orders.yaml": block_with("feed: orders")
        .replace("topic: orders", f"topic: {TOPIC}")
        .replace("/data/", f"/{database}/"),
        "feeds/wrong.yaml": "feed: wrong\n",
    }
    for name, text in files.items():
        file = bare.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    yield replace(
        bare,
        connections={f"AIRFLOW_CONN_{k.upper()}": json.dumps(v) for k, v in connections.items()},
    )
    ledger_server.drop(database)
    ledger_server.execute("postgres", f"DROP ROLE {READER}")


@pytest.fixture(scope="module")
def seen(installed: Installed) -> dict[str, Any]:
    """What Airflow has made of it, after one run of the document's feed."""
    installed.run("tallystick", "ledger", "migrate")
    installed.run("airflow", "db", "migrate")
    out = installed.folder / "seen.json"
    installed.run("python", PROGRAM, "ingest_orders", out)
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def test_each_release_that_the_wheel_accepts_has_an_environment() -> None:
    assert list(PINS) == ["airflow-3.1", "airflow-3.2", "airflow-3.3"]


def test_it_is_that_release_and_nothing_of_the_checkout(installed: Installed) -> None:
    code = "import airflow, tallystick; print(airflow.__version__, tallystick.__file__)"

    version, file = installed.run("python", "-c", code).split()[-2:]

    assert version.startswith(f"{installed.release}.")
    assert Path(file).is_relative_to(installed.folder)


def test_the_dags_parse_and_a_wrong_feed_file_is_told(seen: dict[str, Any]) -> None:
    assert seen["dags"] == ["ingest_orders", "reconcile_orders", "repair_orders"]
    assert list(seen["errors"]) == ["feed_problems.py"]
    assert "tallystick feed check" in seen["errors"]["feed_problems.py"]


def test_the_plugin_is_loaded_and_shows_its_page_to_who_is_signed_in(seen: dict[str, Any]) -> None:
    assert seen["views"] == ["nav", "dag", "dag_run"]
    assert seen["anonymous"] == 401
    assert list(seen["feeds"]) == ["orders"]
    assert seen["pages"] == {"Feeds": 200, "dag": 200, "run": 200}
    assert seen["headings"] == 1


def test_a_run_lands_and_proves_each_record(installed: Installed, seen: dict[str, Any]) -> None:
    assert (seen["run"], seen["warned"]) == ("success", [])
    # Whether a window is complete by now, and told, depends on the hour.
    assert seen["tasks"].pop("announce_complete") in ("success", "skipped")
    assert seen["tasks"] == dict.fromkeys(PARTS_OF_A_RUN, "success")
    batches = json.loads(installed.run("tallystick", "batches", "orders", "--json"))["batches"]
    assert [(each["state"], each["rows"]) for each in batches] == [("published", 2 * RECORDS)]


def test_the_releases_spark_provider_lands_by_spark_submit(
    installed: Installed, seen: dict[str, Any]
) -> None:
    """On the command line, by the hook that tasks use; Spark is the checkout's."""
    home = Path(pyspark.__file__).parent
    program = installed.folder / "bin" / "spark-submit"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\nexport SPARK_HOME={home} PYSPARK_PYTHON={sys.executable}\n"
        'exec "$SPARK_HOME/bin/spark-submit" "$@"\n'
    )
    program.chmod(0o755)
    feed = (installed.folder / "feeds" / "orders.yaml").read_text()
    (installed.folder / "feeds" / "submitted.yaml").write_text(
        feed.replace("feed: orders", "feed: submitted") + "spark: {connection: submit}\n"
    )
    spark = {"conn_type": "spark", "host": "local[1]", "extra": {"jars": ",".join(JARS)}}
    with_spark = replace(
        installed,
        # A release whose provider brings the whole of PySpark would find its own first.
        programs=program.parent,
        connections={
            **installed.connections,
            "AIRFLOW_CONN_SUBMIT": json.dumps(spark),
            "JAVA_HOME": str(ensure_java()),
        },
    )
    command = installed.programs / "tallystick"

    done([command, "land", "submitted"], with_spark.environment(), installed.folder)

    batches = json.loads(installed.run("tallystick", "batches", "submitted", "--json"))["batches"]
    assert [(each["state"], each["rows"]) for each in batches] == [("published", 2 * RECORDS)]
    (installed.folder / "feeds" / "submitted.yaml").unlink()


def test_a_reconcile_run_finds_all_in_order(seen: dict[str, Any]) -> None:
    found = seen["reconciled"]

    assert (found["run"], found["warned"]) == ("success", [])
    assert found["tasks"].pop("announce_complete") in ("success", "skipped")
    assert found["tasks"] == {"reconcile": "success", "judge": "skipped"}


def test_the_runbooks_first_commands_find_the_connections_of_airflows_database(
    installed: Installed, seen: dict[str, Any]
) -> None:
    file = installed.folder / "connections.json"
    texts = {k.removeprefix("AIRFLOW_CONN_").lower(): v for k, v in installed.connections.items()}
    file.write_text(json.dumps({conn_id: json.loads(text) for conn_id, text in texts.items()}))
    installed.run("airflow", "connections", "import", file)
    without = replace(installed, connections={})

    reconciled = without.run("tallystick", "reconcile", "orders")
    findings = json.loads(without.run("tallystick", "findings", "orders", "--json"))

    assert f"Feed orders, topic {TOPIC}: PROVEN_OK" in reconciled
    assert findings["findings"] == []


def test_the_documents_commands_run_as_written(installed: Installed, seen: dict[str, Any]) -> None:
    (installed.folder / "feeds" / "wrong.yaml").unlink()
    commands = [each.split() for each in commands_in(INSTALL, "tallystick")]

    said = {words[1]: installed.run(*words) for words in commands if words[1] != "jars"}

    assert {"feed", "doctor", "plan", "land", "reconcile", "complete"} == said.keys()
    assert f"Feed orders, topic {TOPIC}: PROVEN_OK" in said["reconcile"]
