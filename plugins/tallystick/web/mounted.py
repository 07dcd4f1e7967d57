"""The app as Airflow mounts it: its ledger is that of Airflow's connection."""

from __future__ import annotations

from typing import Final

from tallystick.errors import ConnectionMissing
from tallystick.orchestration.connections import airflow_connection
from tallystick.ports.ledger import Ledger
from tallystick.web.app import tallystick_app
from tallystick.web.desk import PATIENCE
from tallystick.wiring import patient_ledger

METRICS_CONNECTION: Final = "tallystick_metrics"
"""Its password is the token."""


def _opened() -> Ledger:
    return patient_ledger(airflow_connection, PATIENCE)


def _metrics_token() -> str | None:
    try:
        found = airflow_connection(METRICS_CONNECTION).password
    except ConnectionMissing:
        return None
    return found.get_secret_value() if found else None


app = tallystick_app(_opened, _metrics_token)
