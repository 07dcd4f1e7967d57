"""A landing that everybody took for dead, and that comes back to life after another has landed.

Its process stands still, at one point of its work or another, and is taken over meanwhile. It
changes nothing any more: no row, no file, no record.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil
import psycopg
import pytest

from sandbox import Sandbox
from tallystick.domain.finding_codes import Level
from tallystick.domain.verdicts import Verdict
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import create_topic, wait_until
from tests.support.ledger_account import account_of
from tests.support.repository import ROOT
from tests.support.whole_way import Way, environ_of

# Lands a feed, and stands still at one point. Says at the end what became of its batch.
ZOMBIE = """
import json, os, signal, sys
from contextlib import contextmanager
from datetime import timedelta
from tallystick.spark import connect_runner
from tallystick.spark.connect_runner import ConnectRunner
from tests.support.connect_servers import Struck, server_at
from tests.support.whole_way import Way, environ_of
topic, name, url, point = sys.argv[1:]

def freeze():
    os.kill(os.getpid(), signal.SIGSTOP)

class Late(Struck):
    # Stands still before it opens the session.
    @contextmanager
    def session(self, *args, **kwargs):
        freeze()
        with self.server.session(*args, **kwargs) as spark:
            yield spark

server = server_at(url)
if point == "before its session":
    server = Late(server, freeze)
if point == "in its session":
    server = Struck(server, freeze)
if point == "when it has written":
    land = connect_runner.land
    connect_runner.land = lambda *args: (land(*args), freeze())
way = Way(topic, json.load(sys.stdin), name=name)
report = way.land(ConnectRunner(server, {}, timedelta(minutes=5)))
[batch] = report.batches
print(json.dumps([batch.left_to, type(batch.error).__name__, batch.commit is None]))
"""


@pytest.fixture
def way(kafka: str, hdfs: Any, ledger_dsn: str, spark_connect: str, sandbox: Sandbox) -> Way:
    """A feed of one partition, with 500 records."""
    sandbox.up(only=["spark-connect"])
    environ = environ_of(kafka, hdfs, ledger_dsn, spark_connect)
    found = Way(create_topic(kafka), environ)
    produce(kafka, found.topic, messages(500))
    return found


@dataclass(frozen=True)
class Dsn:
    """Where the ledger is."""

    dsn: str


@contextmanager
def zombie(way: Way, point: str) -> Iterator[subprocess.Popen[str]]:
    """A landing in a process of its own that stands still at this point."""
    server = way.environ["AIRFLOW_CONN_SPARK_DEFAULT"].replace("spark-connect://", "sc://")
    process = subprocess.Popen(
        [sys.executable, "-c", ZOMBIE, way.topic, way.name, server, point],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'plugins'}{os.pathsep}{ROOT}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(dict(way.environ)))
        process.stdin.close()
        process.stdin = None  # or communicate would flush it
        wait_until(lambda: is_still(process), f"it stands still {point}", seconds=60)
        yield process
    finally:
        process.kill()
        process.communicate()


def is_still(process: subprocess.Popen[str]) -> bool:
    assert process.poll() is None, process.communicate()
    return psutil.Process(process.pid).status() == psutil.STATUS_STOPPED


def woken(process: subprocess.Popen[str]) -> list[Any]:
    """It goes on to its end: who has its batch, its error, and if it has committed nothing."""
    process.send_signal(signal.SIGCONT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    told: list[Any] = json.loads(out)
    return told


def state_of(way: Way) -> tuple[Any, ...]:
    """All that a reader, or the next run, goes by."""
    account: Mapping[str, Any] = account_of(Dsn(way.environ["LEDGER_DSN"]), way.name)
    return way.rows(), way.files(), account


@pytest.mark.parametrize("point", ["before its session", "in its session", "when it has written"])
def test_a_landing_that_comes_back_to_life_changes_nothing(way: Way, point: str) -> None:
    with zombie(way, point) as process:
        with psycopg.connect(way.environ["LEDGER_DSN"]) as ledger:
            ledger.execute("UPDATE batch SET lease_until = now() WHERE holder IS NOT NULL")
        way.landed()
        before = state_of(way)
        left_to, error, has_not_committed = woken(process)

    assert has_not_committed
    assert left_to or error == "SparkUnavailable"
    assert before[0] == way.produced({0: (0, 500)})
    assert state_of(way) == before
    way.landed()
    report = way.reconciled(Level.L3)
    assert (report.verdict, report.findings) == (Verdict.PROVEN_OK, ())
    assert state_of(way)[:2] == before[:2]
    assert not [each for each in way.staged() if each[0] != "_"]
