"""Fixtures that several test folders share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import HealthCheck, settings

from tests.support.ledger_server import LedgerServer

# As the wheel is called: the checkout's environment would have `python -m tallystick`.
os.environ["TALLYSTICK_PROGRAM"] = "tallystick"

pytest_plugins = ["tests.support.sandbox_fixtures"]
# Their tests start Kafka, HDFS, Spark or Airflow.
STACKS = {
    "airflow",
    "clusters",
    "compose",
    "detector",
    "installed",
    "integration",
    "spark_local",
    "sparks",
    "trouble",
}

# Modules of minutes go first: one that began late would be waited for alone. The first one starts
# every cluster, and no other Airflow beside it.
LONGEST = (
    "test_every_engine_airflow",
    "test_yarn",
    "test_standalone",
    "test_feeds",
    "test_page_cures",
    "test_releases",
    "test_hdfs_ha",
    "test_hdfs_kerberos",
    "test_kafka_secured",
)

# A busy machine is slow, and no property is wrong for it. A fixture that all examples share has to
# bear that they do; a test that says `suppress_health_check` itself would lose the other one.
settings.register_profile(
    "tallystick",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("tallystick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest modules go first, then all that needs the sandbox; workflows follow.

    The many quick tests then fill up whatever time one of the processes has left.
    """
    for item in items:
        if "sandbox" in getattr(item, "fixturenames", ()) or STACKS & set(item.path.parts):
            item.add_marker("sandbox")
    items.sort(key=_place)


def _place(item: pytest.Item) -> int:
    if item.path.stem in LONGEST:
        return LONGEST.index(item.path.stem) - len(LONGEST)
    if item.get_closest_marker("sandbox"):
        return 0
    return 1 if "workflows" in item.path.parts else 2


@pytest.fixture(scope="session")
def ledger_server() -> Iterator[LedgerServer]:
    """One PostgreSQL for the whole test run, started when a test first needs it."""
    server = LedgerServer()
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def ledger_database(ledger_server: LedgerServer) -> Iterator[str]:
    """The name of a migrated, empty database for one test."""
    database = ledger_server.fresh()
    yield database
    ledger_server.drop(database)


@pytest.fixture
def ledger_dsn(ledger_server: LedgerServer, ledger_database: str) -> str:
    """The connection string of a migrated, empty database for one test."""
    return ledger_server.dsn(ledger_database)


@pytest.fixture
def two_hours_pass(ledger_server: LedgerServer, ledger_database: str) -> Callable[[], None]:
    """Makes every waiver of the test's ledger two hours older, and every request for one."""
    return partial(ledger_server.age_waivers, ledger_database)


@pytest.fixture
def ledger_databases(ledger_server: LedgerServer) -> Iterator[Callable[[], str]]:
    """Gives the connection string of another migrated, empty database at each call."""
    made: list[str] = []

    def another() -> str:
        made.append(ledger_server.fresh())
        return ledger_server.dsn(made[-1])

    yield another
    for database in made:
        ledger_server.drop(database)
