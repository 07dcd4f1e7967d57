"""The app as Airflow mounts it: its ledger is that of Airflow's connection.

How long a reader waits is in Airflow's settings, `[tallystick] reader_seconds`.
"""

from __future__ import annotations

import logging
from typing import Final

from airflow.configuration import conf
from airflow.exceptions import AirflowConfigException

from tallystick.errors import ConnectionMissing
from tallystick.ledger.ledger import Ledger
from tallystick.orchestration.connections import airflow_connection
from tallystick.web.app import tallystick_app
from tallystick.web.desk import READER_SECONDS, patience_of
from tallystick.wiring.adapters import patient_ledger

METRICS_CONNECTION: Final = "tallystick_metrics"
"""Its password is the token."""
LEAST_SECONDS, MOST_SECONDS = 0.1, 600.0
"""Both included. Of less PostgreSQL would make no limit at all."""

log = logging.getLogger(__name__)


def _seconds() -> float:
    """Returns how long a reader waits. A wrong setting never stops Airflow's api-server."""
    try:
        said = conf.getfloat("tallystick", "reader_seconds", fallback=READER_SECONDS)
        if LEAST_SECONDS <= said <= MOST_SECONDS:
            return said
        wrong = f"it is {said:g}, not from {LEAST_SECONDS:g} to {MOST_SECONDS:g}"
    except AirflowConfigException as error:
        wrong = str(error)
    log.error("[tallystick] reader_seconds counts as %g: %s", READER_SECONDS, wrong)
    return READER_SECONDS


_reader_seconds: Final = _seconds()


def _opened() -> Ledger:
    return patient_ledger(airflow_connection, patience_of(_reader_seconds))


def _metrics_token() -> str | None:
    try:
        found = airflow_connection(METRICS_CONNECTION).password
    except ConnectionMissing:
        return None
    return found.get_secret_value() if found else None


app = tallystick_app(_opened, _metrics_token, reader_seconds=_reader_seconds)
