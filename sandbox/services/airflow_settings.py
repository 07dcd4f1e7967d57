"""The variables that Airflow runs with, beside the connections; the same for all components."""

from __future__ import annotations

import base64
import os
import secrets
from pathlib import Path

from sandbox.entry.class_archive import OPTIONS, spark_variables
from sandbox.entry.layout import ROOT
from sandbox.entry.system import ensure_java
from sandbox.ports import HOST
from sandbox.service import QUICK_JVM
from sandbox.services.postgres import Postgres
from sandbox.state import State

ADMIN = "admin"
SECOND = "op"
"""Somebody else who may repair: a waiver takes two people."""
VIEWER = "vera"
ROLES = {ADMIN: "admin", SECOND: "op", VIEWER: "viewer"}
FEEDS = "TALLYSTICK_FEEDS"
SHARED = Path(__file__).with_name("airflow.env")


def airflow_settings(state: State, postgres: Postgres, *, folder: Path, url: str) -> dict[str, str]:
    """Everything Airflow must be told: folders, database, users, secrets, addresses."""
    database = f"{postgres.address}/airflow"
    settings = {
        **shared_settings(),
        "PYTHONPATH": str(ROOT / "plugins"),
        "TALLYSTICK_PROGRAM": "./tallystick",
        "JAVA_HOME": str(ensure_java()),
        "SPARK_LOCAL_IP": HOST,  # a driver would bind the outward address
        **spark_variables({OPTIONS: " ".join(QUICK_JVM)}),
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__FERNET_KEY": str(state.once("secret:fernet", _fernet_key())),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(
            f"{user}:{role}" for user, role in ROLES.items()
        ),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords_file(folder)),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": (
            f"postgresql+psycopg://airflow:{postgres.password('airflow')}@{database}"
        ),
        "AIRFLOW__API__HOST": HOST,
        "AIRFLOW__API__PORT": url.rpartition(":")[2],
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__SECRET_KEY": state.secret("airflow_api_key"),
        # All components need the same one; HS512 wants 64 bytes.
        "AIRFLOW__API_AUTH__JWT_SECRET": str(
            state.once("secret:airflow_jwt", secrets.token_urlsafe(64))
        ),
    }
    if FEEDS in os.environ:
        settings[FEEDS] = os.environ[FEEDS]
    return settings


def shared_settings() -> dict[str, str]:
    """What docker-compose.yml tells Airflow, too: neither has a copy of its own."""
    lines = [each for each in SHARED.read_text().splitlines() if not each.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def passwords_file(folder: Path) -> Path:
    """The file of the simple auth manager's passwords, in plain text; to be mode 600."""
    return folder / "passwords.json"


def _fernet_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
