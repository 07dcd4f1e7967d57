"""The app as Airflow mounts it: its ledger is that of Airflow's connection."""

from __future__ import annotations

from tallystick.orchestration.connections import airflow_connection
from tallystick.ports.ledger import Ledger
from tallystick.web.app import tallystick_app
from tallystick.web.desk import PATIENCE
from tallystick.wiring import patient_ledger


def _opened() -> Ledger:
    return patient_ledger(airflow_connection, PATIENCE)


app = tallystick_app(_opened)
