"""No secret of a connection is ever shown: not in a log, a plan, an argument list, or Spark's UI.

Kafka asks for user and password, the ledger and WebHDFS have passwords of their own, and the
landing is the command line's, by a real spark-submit. The event log is what Spark's UI is made of.
"""

from __future__ import annotations

import base64
import json
import logging
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tallystick.errors import IngestionError, LedgerAccessRefused, SourceRefused
from tallystick.settings.connections import connection_in
from tallystick.spark.kafka_access import SECRETS_FILE
from tallystick.wiring.adapters import open_services
from tallystick.workflows.planning.plan import dry_run
from tallystick.workflows.services import Services
from tests.support.ledger_server import LedgerServer
from tests.support.secret_search import assert_hidden, hdfs_texts, ledger_texts, watched
from tests.support.spark_place import JARS, PLACE
from tests.trouble.command import Command, Folder
from tests.trouble.place import KAFKA_PASSWORD, KAFKA_USER
from tests.trouble.scene import Scene

WEBHDFS_PASSWORD = "webhdfs-pa55word"
WRONG = "wr0ng-pa55word"
# The part of Kafka's password that no way of quoting changes.
KAFKA_CORE = "kafka-pa55word"


def environ_of(
    scene: Scene, *, kafka: str = KAFKA_PASSWORD, ledger: str | None = None
) -> dict[str, str]:
    """The same services, each with a password."""
    sasl = {
        "bootstrap.servers": scene.place.sasl_servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": KAFKA_USER,
        "sasl.password": kafka,
    }
    webhdfs = {"host": scene.environ["WEBHDFS_URL"], "login": "root", "password": WEBHDFS_PASSWORD}
    spark = {"host": PLACE.master, "extra": {"jars": ",".join(JARS)}}
    connections: dict[str, dict[str, Any]] = {
        "kafka": {"extra": sasl},
        "webhdfs": {**webhdfs, "extra": {"fs": scene.environ["HDFS_URL"]}},
        "spark": spark,
    }
    found = {
        f"AIRFLOW_CONN_{kind.upper()}_DEFAULT": json.dumps({"conn_type": kind, **each})
        for kind, each in connections.items()
    }
    return {**found, "LEDGER_DSN": ledger or scene.environ["LEDGER_DSN"]}


def test_a_landing_shows_no_secret(
    scene: Scene, ledger_server: LedgerServer, tmp_path: Path
) -> None:
    temporary, events = tmp_path / "temporary", tmp_path / "events"
    temporary.mkdir()
    events.mkdir()
    folder = Folder(tmp_path / "feeds")
    conf = {"enabled": "true", "dir": events.as_uri(), "compress": "false"}
    conf = {f"spark.eventLog.{name}": value for name, value in conf.items()}
    folder.write(scene.feed(spark={"conf": conf}))
    environ = {**environ_of(scene), "TMPDIR": str(temporary)}
    with watched(scene.environ["WEBHDFS_URL"], scene.root) as watch:
        command = Command(folder, environ, "land", scene.name, "--json")
        try:
            command.ended()
        finally:
            command.kill()
    assert command.code == 0, command.err
    assert command.document["batches"][0]["rows"] == scene.count
    event_log = "".join(each.read_text() for each in events.rglob("*") if each.is_file())
    texts = {
        "standard output": command.out,
        "standard error": command.err,
        "an argument list": "\n".join(watch.arguments),
        "an environment of Spark's": "\n".join(watch.environments),
        "plan.json": "\n".join(watch.plans),
        "Spark's event log": event_log,
        "HDFS": "\n".join(hdfs_texts(scene.environ["WEBHDFS_URL"], scene.root)),
        "the ledger": "\n".join(ledger_texts(scene.environ["LEDGER_DSN"])),
    }
    assert "org.apache.spark.deploy.SparkSubmit" in texts["an argument list"]
    assert "SPARK_" in texts["an environment of Spark's"]
    assert SECRETS_FILE in texts["plan.json"], "it names the place of the secret"
    assert scene.topic in event_log
    basic = base64.b64encode(f"root:{WEBHDFS_PASSWORD}".encode()).decode()
    assert_hidden(texts, KAFKA_CORE, ledger_server.password, WEBHDFS_PASSWORD, basic)
    left = [each.name for each in temporary.rglob("*") if each.name == SECRETS_FILE]
    assert left == [], "the file with the secrets is gone with the application"
    scene.recovers()


@contextmanager
def opened(scene: Scene, environ: Mapping[str, str]) -> Iterator[Services]:
    with open_services(scene.feed(), lambda conn_id: connection_in(environ, conn_id)) as services:
        yield services


def test_wrong_passwords_are_told_without_them(
    scene: Scene, ledger_server: LedgerServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    dsn = scene.environ["LEDGER_DSN"].replace(ledger_server.password, WRONG)
    with opened(scene, environ_of(scene)) as services:
        assert dry_run(services, None).wanted == scene.count
    errors: list[IngestionError] = []
    for environ in (environ_of(scene, kafka=WRONG), environ_of(scene, ledger=dsn)):
        with opened(scene, environ) as services, pytest.raises(IngestionError) as caught:
            dry_run(services, None)
        errors.append(caught.value)
    refused, shut_out = errors
    assert isinstance(refused, SourceRefused)
    assert not refused.retry
    scene.tells(refused, "at plan", "uthentication failed", "Check the connection's user")
    assert isinstance(shut_out, LedgerAccessRefused)
    assert not shut_out.retry
    scene.tells(shut_out, "at plan", 'password authentication failed for user "tallystick"')
    texts = {
        "the log": caplog.text,
        "an error": "".join("".join(traceback.format_exception(each)) for each in errors),
        "a repr": repr(errors),
    }
    assert_hidden(texts, WRONG, KAFKA_CORE, ledger_server.password, WEBHDFS_PASSWORD)
