"""The real services, started once for a test run and shared by every test that names them.

A test that needs a service fails when it can't be started: nothing is skipped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sandbox import Sandbox

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class HdfsPlace:
    """Where the test run's HDFS is."""

    webhdfs_url: str
    hdfs_url: str
    user: str


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox of the test run's own, beside any other; nothing is started in it yet."""
    directory = os.environ.get("TALLYSTICK_TEST_SANDBOX") or ROOT / ".sandbox" / "tests"
    sandbox = Sandbox(directory)
    try:
        yield sandbox
    finally:
        sandbox.down(purge=True)


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
    return HdfsPlace(env["WEBHDFS_URL"], env["HDFS_URL"], os.environ.get("USER") or "root")


@pytest.fixture(scope="session")
def airflow(sandbox: Sandbox) -> dict[str, str]:
    """The variables of a whole running sandbox, Airflow among them."""
    sandbox.up()
    return sandbox.env()
