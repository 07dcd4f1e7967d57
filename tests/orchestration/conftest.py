"""Airflow in this process, on a database of its own: set up before anything imports it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.registry import RULE_OF
from tests.orchestration.cluster import GROUP, Cluster
from tests.orchestration.page_place import PagePlace
from tests.orchestration.stage import Stage
from tests.support.builders import FEED
from tests.support.ledger_story import LedgerStory, finding_of
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import Story

ROOT = Path(__file__).resolve().parents[2]
FEEDS = Path(__file__).parent / "feeds"
HOME = Path(tempfile.mkdtemp(prefix="tallystick-airflow-"))
SETTINGS = {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
    "AIRFLOW__CORE__FERNET_KEY": Fernet.generate_key().decode(),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "ada:admin,vera:viewer,uma:user,ugo:user",
    "AIRFLOW__API_AUTH__JWT_SECRET": "as long as HS512 wants it to be, " * 3,
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{HOME}/airflow.db",
    "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(HOME / "logs"),
    "TALLYSTICK_FEEDS": str(FEEDS),
}


@contextmanager
def airflow_environment() -> Iterator[None]:
    """Ours instead of any Airflow variables that are set; as before at the end of the block."""
    before = dict(os.environ)
    for name in before:
        if name.startswith("AIRFLOW"):
            del os.environ[name]
    os.environ.update(SETTINGS)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


if "airflow" in sys.modules:
    raise RuntimeError("Airflow was imported before its settings were made: import it in a test")
with airflow_environment():
    import airflow.settings  # noqa: F401 - reads the environment once, now


@pytest.fixture(scope="package", autouse=True)
def _environment() -> Iterator[None]:
    """Airflow's settings hold while these tests run, and for no other test.

    Its plugins are loaded once, here: it reads the file that names what is none by a library's old
    name, and that warns.
    """
    from airflow.plugins_manager import ensure_plugins_loaded

    with airflow_environment():
        with warnings.catch_warnings(action="ignore"):
            ensure_plugins_loaded()
        yield
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="package")
def airflow_database() -> None:
    """A migrated metadata database, for what really runs."""
    from airflow.utils.db import initdb

    initdb()


@pytest.fixture(scope="package")
def known_dags(airflow_database: None) -> None:
    """The DAGs of the tests' feeds are known."""
    show_dags()


def show_dags() -> None:
    """Make the DAGs of the tests' feeds known, as the DAG processor would."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db

    DagBundlesManager().sync_bundles_to_db()
    sync_bag_to_db(DagBag(known_pools={"default_pool", "spark_local"}), "dags-folder", None)


@pytest.fixture
def stage(
    ledger_databases: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Stage:
    broker = ScriptedBroker("orders", partitions=3)
    for log in broker.logs.values():
        log.append(Kind.RECORD, 10)
    stage = Stage(Story(ledger_databases(), tmp_path, broker))
    for module in ("ingest", "batch_tasks", "reconcile", "repair"):
        monkeypatch.setattr(f"tallystick.orchestration.{module}.services_of", stage.services_of)
    for module in ("ingest", "last_tasks", "complete_sensor"):
        monkeypatch.setattr(f"tallystick.orchestration.{module}.open_ledger", stage.open_ledger)
    return stage


@pytest.fixture
def dags(airflow_database: None, _short_polls: None) -> Any:
    """Parsed anew for each test, as for each task: a run's form is kept in the DAG's parameters."""
    return parsed_dags()


def parsed_dags() -> Any:
    """The DAGs of the feeds that the environment names, whose tasks are tried again at once."""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(known_pools={"default_pool", "spark_local"})
    for dag in bag.dags.values():
        for task in dag.tasks:
            task.retry_delay = timedelta(0)
    return bag.dags


@pytest.fixture
def _short_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's loop looks once a second if a task may start; here it looks more often."""
    really = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: really(min(seconds, 0.02)))


@pytest.fixture
def story(ledger_dsn: str) -> Iterator[LedgerStory]:
    """A feed with a finding that a repair may mend."""
    story = LedgerStory(ledger_dsn)
    story.open({0: (0, 20)})
    story.committed((0, 0, 10))
    gone = replace(
        finding_of(0, 5), rule=RULE_OF[FindingCode.COMMITTED_FILE_MISSING], name="", level=Level.L2
    )
    story.ledger.record_findings(FEED, [gone])
    yield story
    story.ledger.close()


@pytest.fixture
def place(story: LedgerStory) -> PagePlace:
    """Tallystick's app on that ledger."""
    return PagePlace(story.dsn)


@pytest.fixture
def no_runs() -> None:
    """A test that reads Airflow's record of runs begins without those of the tests before it."""
    from airflow.models import DagRun
    from airflow.utils.session import create_session

    with create_session() as session:
        session.query(DagRun).delete()


@pytest.fixture
def _paused() -> Iterator[None]:
    """Each test begins with a repair that is paused, and has no run."""
    _pause_all()
    yield
    _pause_all()


def _pause_all() -> None:
    from airflow import settings
    from airflow.models import DagModel, DagRun
    from sqlalchemy import delete, update

    session = settings.Session()
    session.execute(delete(DagRun))
    session.execute(update(DagModel).values(is_paused=True))
    session.commit()


@pytest.fixture
def cluster(
    ledger_databases: Callable[[], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Cluster:
    folder = tmp_path / "feeds"
    folder.mkdir()
    (folder / "events.yaml").write_text(GROUP)
    monkeypatch.setenv("TALLYSTICK_FEEDS", str(folder))
    cluster = Cluster(ledger_databases(), tmp_path, folder)
    for module in ("shared", "batch_tasks", "reconcile", "repair"):
        monkeypatch.setattr(f"tallystick.orchestration.{module}.services_of", cluster.services_of)
    for module in ("shared", "ingest", "last_tasks", "complete_sensor"):
        monkeypatch.setattr(f"tallystick.orchestration.{module}.open_ledger", cluster.open_ledger)
    monkeypatch.setattr("tallystick.orchestration.shared.topics_of", cluster.topics_of)
    cluster.create("orders.eu")
    cluster.create("orders.us")
    return cluster
