"""The real services, started once for each process of a test run and shared by its tests.

A test that needs a service fails when it can't be started: nothing is skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pytest

from sandbox import Sandbox
from sandbox.clusters.cluster import Cluster
from sandbox.entry.class_archive import OPTIONS, joined
from sandbox.service import QUICK_JVM
from tests.support.clearing_up import SANDBOX, Watcher
from tests.support.landed_files import write_once

ROOT = Path(__file__).resolve().parents[2]
# Of every Spark that tests start, servers too: none lives long enough for the second compiler.
os.environ[OPTIONS] = joined(os.environ, QUICK_JVM)

OneCluster = TypeVar("OneCluster", bound=Cluster)


@dataclass(frozen=True)
class HdfsPlace:
    """Where the test run's HDFS is."""

    webhdfs_url: str
    hdfs_url: str
    user: str


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox of this process's own, beside any other; nothing is started in it yet."""
    directory = os.environ.get("TALLYSTICK_TEST_SANDBOX") or ROOT / ".sandbox" / "tests"
    worker = os.environ.get("PYTEST_XDIST_WORKER", "alone")
    with watched_sandbox(Path(directory) / worker) as sandbox:
        yield sandbox


@contextmanager
def watched_sandbox(directory: Path | str) -> Iterator[Sandbox]:
    """A sandbox that is gone after the block, and after a kill of this process."""
    sandbox = Sandbox(directory, usual_ports={})
    watcher = Watcher(SANDBOX, sandbox.directory)
    try:
        yield sandbox
    finally:
        sandbox.down(purge=True)
        watcher.call_off()


@contextmanager
def running(sandbox: Sandbox, kind: type[OneCluster], *beside: str) -> Iterator[OneCluster]:
    """A cluster of the sandbox, and these groups beside it; the cluster ends with the block.

    At rest, its JVMs would take a part of a processor from every later test.
    """
    found = sandbox.clusters[kind.name]
    assert isinstance(found, kind)
    try:
        sandbox.up(only=[*beside, kind.name])
        yield found
    finally:
        for each in found.services:
            each.kill()


@pytest.fixture(scope="session")
def kafka(sandbox: Sandbox) -> str:
    """Bootstrap servers of a running broker."""
    sandbox.up(only=["kafka"])
    return sandbox.env()["KAFKA_BOOTSTRAP_SERVERS"]


@pytest.fixture(scope="session")
def hdfs(sandbox: Sandbox) -> HdfsPlace:
    """A running HDFS with a live DataNode."""
    sandbox.up(only=["hdfs"])
    env = sandbox.env()
    user = os.environ.get("USER") or "root"
    write_once(env["WEBHDFS_URL"], user)
    return HdfsPlace(env["WEBHDFS_URL"], env["HDFS_URL"], user)


@pytest.fixture(scope="session")
def spark_connect(sandbox: Sandbox) -> str:
    """The address of a running Spark Connect server, `sc://host:port`."""
    sandbox.up(only=["spark-connect"])
    return sandbox.env()["SPARK_CONNECT_URL"]
