"""Airflow in this process, on a database of its own: set up before anything imports it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FEEDS = Path(__file__).parent / "feeds"
HOME = Path(tempfile.mkdtemp(prefix="tallystick-airflow-"))
SETTINGS = {
    "AIRFLOW_HOME": str(HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(HOME / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
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
    """Airflow's settings hold while these tests run, and for no other test."""
    with airflow_environment():
        yield
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="package")
def airflow_database() -> None:
    """A migrated metadata database, for what really runs."""
    from airflow.utils.db import initdb

    initdb()
