"""A feed is read on a Spark Connect server as in a plain session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.domain.identities import Owner
from tallystick.spark.cluster_zip import PACKAGE
from tallystick.workflows.current_files import current_paths
from tallystick.workflows.run import land_feed
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import FEED, Story

pytestmark = pytest.mark.integration

# A process of its own: one process never has both a regular session and a remote one.
CLIENT = """
import json, sys
from pyspark.sql import SparkSession
from tallystick.spark.reading import landed_frame
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
empty = landed_frame(spark, [])
assert empty.count() == 0
found = landed_frame(spark, json.load(sys.stdin))
assert found.schema == empty.schema, (found.schema, empty.schema)
print(json.dumps(sorted([row.partition, row.offset] for row in found.collect())))
spark.stop()
"""


def test_a_feed_is_read_on_a_connect_server(
    connect_server: str, ledger_databases: Callable[[], str], tmp_path: Path
) -> None:
    broker = ScriptedBroker("orders")
    broker.logs[0].append(Kind.RECORD, 10)
    broker.logs[1].append(Kind.RECORD, 7)
    services = Story(ledger_databases(), tmp_path / "files", broker).services()
    land_feed(services, None, Owner("test"))
    uris = [services.store.uri(each) for each in current_paths(services.ledger, FEED)]

    done = subprocess.run(
        [sys.executable, "-c", CLIENT, connect_server],
        input=json.dumps(uris),
        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        *([0, offset] for offset in range(10)),
        *([1, offset] for offset in range(7)),
    ]
