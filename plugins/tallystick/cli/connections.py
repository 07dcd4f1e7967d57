"""A command finds a connection in the environment, else in the Airflow of this machine.

Airflow is imported only where the environment lacks one: it takes seconds. It is asked in the way
of `airflow connections get`: its secrets backends, then its own database.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tallystick.errors import ConnectionMissing
from tallystick.settings.connections import Connection, connection_in, connection_like


def find_connection(environ: Mapping[str, str], conn_id: str) -> Connection:
    """The connection of the environment, else of Airflow.

    Raises ConnectionMissing, which names every place that was asked and what kept it from an
    answer, or ConfigurationError for a broken one.
    """
    try:
        return connection_in(environ, conn_id)
    except ConnectionMissing as missing:
        places = missing.accepted
    if not has_airflow(environ):
        raise ConnectionMissing(
            conn_id, None, f"{places}; no Airflow was asked, because AIRFLOW_HOME is not set"
        )
    with airflow_kept_quiet():
        found = _airflow_connection(conn_id)
        if found is not None:
            return connection_like(conn_id, found)
        raise ConnectionMissing(conn_id, None, f"{places}; in Airflow, {_asked(conn_id)}")


def has_airflow(environ: Mapping[str, str]) -> bool:
    """True where somebody has set Airflow up: its import would make a home where there is none."""
    if any(name == "AIRFLOW_HOME" or name.startswith("AIRFLOW__") for name in environ):
        return True
    return "HOME" in environ and Path(environ["HOME"], "airflow", "airflow.cfg").exists()


def _airflow_connection(conn_id: str) -> Any:
    from airflow.exceptions import AirflowException
    from airflow.models import Connection as AirflowConnection

    try:
        return AirflowConnection.get_connection_from_secrets(conn_id)
    except AirflowException:  # not found, or a backend that allows nobody to look further
        return None


def _asked(conn_id: str) -> str:
    """Each backend that Airflow asks, and why it could not answer: Airflow itself hides that."""
    from airflow.configuration import ensure_secrets_loaded

    places = []
    for each in ensure_secrets_loaded():
        name = type(each).__name__
        try:
            found = each.get_connection(conn_id=conn_id)
            if found is not None:
                found.get_uri()  # reads the password
        except Exception as error:  # noqa: BLE001  a plugin of anybody's, asked for its reason
            reason = str(error).partition("\n")[0] or "it was stored under another Fernet key"
            name += f" ({type(error).__name__}: {reason})"
        places.append(name)
    return ", ".join(places)


@contextlib.contextmanager
def airflow_kept_quiet() -> Iterator[None]:
    """Keeps standard output and the logs as they were: Airflow's import takes both over."""
    root = logging.getLogger()
    handlers, level, disabled = [*root.handlers], root.level, root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        logging.disable(disabled)
        root.handlers[:] = handlers
        root.setLevel(level)
