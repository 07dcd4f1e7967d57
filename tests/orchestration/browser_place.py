"""A real api-server with Tallystick's plugin, and with people who may sign in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from tests.orchestration.conftest import HOME, SETTINGS
from tests.support.busy import BUSY_SECONDS, READER_SETTING
from tests.support.free_port import free_port

START_SECONDS: Final = 180.0
PASSWORDS: Final = {"ada": "a password of ada", "vera": "a password of vera"}


@dataclass(frozen=True)
class ApiServer:
    """A running api-server."""

    url: str

    def trigger(self, dag_id: str, run_id: str) -> None:
        """Make a run of the DAG, which no scheduler will ever start."""
        login = {"username": "ada", "password": PASSWORDS["ada"]}
        with httpx.Client(base_url=self.url, trust_env=False, timeout=30) as client:
            token = client.post("/auth/token", json=login).raise_for_status().json()
            client.headers["Authorization"] = f"Bearer {token['access_token']}"
            client.patch(f"/api/v2/dags/{dag_id}", json={"is_paused": False}).raise_for_status()
            asked = {"dag_run_id": run_id, "logical_date": None}
            client.post(f"/api/v2/dags/{dag_id}/dagRuns", json=asked).raise_for_status()


@contextmanager
def api_server(ledger_dsn: str) -> Iterator[ApiServer]:
    """On the tests' own metadata database, with this ledger; gone after the block."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    passwords = HOME / "passwords.json"
    passwords.write_text(json.dumps(PASSWORDS))
    ledger = ledger_dsn.removeprefix("postgresql://")
    env = os.environ | SETTINGS | {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW_CONN_LEDGER_DEFAULT": f"postgres://{ledger}",
        READER_SETTING: str(BUSY_SECONDS),
        "PYTHONPATH": SETTINGS["AIRFLOW__CORE__PLUGINS_FOLDER"],
    }  # fmt: skip
    program = str(Path(sys.executable).parent / "airflow")
    command = [program, "api-server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    log = HOME / "api-server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=env, stdout=out, stderr=out)
        try:
            _wait(url, process, log)
            yield ApiServer(url)
        finally:
            process.terminate()
            process.wait(30)


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx.get(f"{url}/api/v2/version", trust_env=False).raise_for_status()
        except httpx.HTTPError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"the api-server did not start: {log.read_text()[-2000:]}")
