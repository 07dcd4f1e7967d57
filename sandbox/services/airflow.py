"""Airflow in its four parts: api-server, scheduler with LocalExecutor, DAG processor, triggerer.

Logs are read from files: the log servers of scheduler and triggerer would listen on all interfaces.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import psutil
from typing_extensions import override

from sandbox.entry.jars import ensure_jars
from sandbox.errors import ServiceFailed
from sandbox.ports import HOST
from sandbox.service import Home, Service, program
from sandbox.services.airflow_settings import ADMIN, ROLES, airflow_settings, passwords_file
from sandbox.services.postgres import Postgres
from sandbox.state import write_private

POOL = "spark_local"
ANSWER_SECONDS = 5.0
HTTP_CREATED, HTTP_CONFLICT = 201, 409


class Component(Service):
    """One of Airflow's processes; ready when the health page shows a heartbeat since its start."""

    # The scheduler would wait for running tasks, and LocalExecutor's workers ignore SIGTERM: then
    # the session is killed.
    grace_seconds = 12.0

    def __init__(
        self, airflow: Airflow, name: str, *arguments: str, port_names: Sequence[str] = ()
    ) -> None:
        super().__init__(airflow.home, f"airflow-{name}", port_names=port_names)
        self._airflow = airflow
        self._arguments = (name, *arguments)
        self._health_name = name.replace("-", "_")

    @property
    @override
    def address(self) -> str:
        return "-"

    @property
    @override
    def memory(self) -> str:
        return "no limit"

    @override
    def prepare(self) -> None:
        """Nothing: the group prepares for all four."""

    @override
    def command(self) -> list[str]:
        return [program("airflow"), *self._arguments]

    @override
    def environment(self) -> Mapping[str, str]:
        return self._airflow.environment()

    @override
    def missing(self) -> str | None:
        health = self._airflow.health()
        if health is None:
            return "the api-server does not answer"
        mine = health.get(self._health_name) or {}
        heartbeat = mine.get(f"latest_{self._health_name}_heartbeat")
        if mine.get("status") != "healthy" or heartbeat is None:
            return f"Airflow calls it {mine.get('status') or 'unknown'}"
        # A heartbeat of its predecessor may still look fresh.
        return (
            None
            if datetime.fromisoformat(heartbeat) >= self._started_at()
            else "it has given no heartbeat yet"
        )

    def _started_at(self) -> datetime:
        pid = self.pid
        try:
            return datetime.fromtimestamp(psutil.Process(pid).create_time() if pid else 0.0, tz=UTC)
        except psutil.Error:
            return datetime.now(tz=UTC)


class ApiServer(Component):
    """The api-server; ready when it knows our password: a stranger on the port would not."""

    @property
    @override
    def address(self) -> str:
        return self._airflow.url

    @override
    def missing(self) -> str | None:
        return None if self._airflow.token() is not None else "it accepts no login"

    @override
    def provision(self) -> None:
        self._airflow.make_pool()


class Airflow:
    """The four components together, their settings and their users."""

    def __init__(
        self, home: Home, postgres: Postgres, connections: Callable[[], Mapping[str, str]]
    ) -> None:
        """``connections`` gives the AIRFLOW_CONN_* variables at start."""
        self.home = home
        self.settings: dict[
            str, str
        ] = {}  # further variables, for tests; to be set before the start
        self._postgres = postgres
        self._connections = connections
        self.api_server = ApiServer(self, "api-server", port_names=("airflow",))
        self.scheduler = Component(self, "scheduler", "--skip-serve-logs")
        self.dag_processor = Component(self, "dag-processor")
        self.triggerer = Component(self, "triggerer", "--skip-serve-logs")
        self.services: Sequence[Component] = (
            self.api_server,
            self.scheduler,
            self.dag_processor,
            self.triggerer,
        )

    @property
    def url(self) -> str:
        """The address of UI and API."""
        return f"http://{HOST}:{self.home.ports['airflow']}"

    @property
    def is_running(self) -> bool:
        """True while all four live."""
        return all(component.is_running for component in self.services)

    def password(self, user: str = ADMIN) -> str:
        """The password of one of ROLES."""
        return self.home.state.secret(f"airflow_{user}")

    @property
    def is_outdated(self) -> bool:
        """True if something of it runs with other settings or addresses than a start would give."""
        running = any(component.is_running for component in self.services)
        return running and self.home.state.fact("airflow_settings") != self._digest()

    def start(self) -> None:
        """Start what does not run, all anew if it is outdated; returns when all are ready."""
        if self.is_outdated:
            self.stop()
        self.home.state.replace("airflow_settings", self._digest())
        if not self.api_server.is_running:
            self.home.ports.claim("airflow")
        ensure_jars("spark-kafka")
        self._write_passwords()
        self._migrate()
        for component in self.services:
            component.start(wait=False)
        for component in self.services:
            component.wait()

    def stop(self) -> None:
        """Stop all four at once."""
        with ThreadPoolExecutor() as pool:
            for done in [pool.submit(component.stop) for component in self.services]:
                done.result()

    def kill(self) -> None:
        """SIGKILL all four and every task."""
        for component in self.services:
            component.kill()

    def health(self) -> dict[str, Any] | None:
        """What Airflow says of itself; None if it does not answer."""
        try:
            answer = httpx.get(
                f"{self.url}/api/v2/monitor/health", timeout=ANSWER_SECONDS, trust_env=False
            )
            found: dict[str, Any] = answer.raise_for_status().json()
        except (httpx.HTTPError, ValueError):
            return None
        return found

    def token(self, user: str = ADMIN, seconds: float = ANSWER_SECONDS) -> str | None:
        """A token for the REST API; None if the login is refused or nobody answers in time."""
        login = {"username": user, "password": self.password(user)}
        try:
            answer = httpx.post(
                f"{self.url}/auth/token", json=login, timeout=seconds, trust_env=False
            )
            return (
                str(answer.json()["access_token"]) if answer.status_code == HTTP_CREATED else None
            )
        except (httpx.HTTPError, ValueError, KeyError):
            return None

    def make_pool(self) -> None:
        """See that the pool for Spark drivers exists: one at a time on a small machine."""
        # A busy machine has just let us in, and may take its time to do so again.
        patience = ANSWER_SECONDS * 4
        answer = httpx.post(
            f"{self.url}/api/v2/pools",
            json={"name": POOL, "slots": 1, "description": "Spark drivers on this machine"},
            headers={"Authorization": f"Bearer {self.token(seconds=patience)}"},
            timeout=patience,
            trust_env=False,
        )
        if answer.status_code not in (HTTP_CREATED, HTTP_CONFLICT):
            raise ServiceFailed(
                "airflow",
                f"refused the pool {POOL} (HTTP {answer.status_code})",
                self.api_server.log,
            )

    def environment(self) -> dict[str, str]:
        """What the components run in: ours without foreign Airflow settings, and theirs."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("AIRFLOW")}
        inherited.pop("PYTHONDONTWRITEBYTECODE", None)  # or every task compiles our modules
        # spark-submit and python3 are taken from PATH.
        inherited["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return inherited | self._own_settings()

    def _digest(self) -> str:
        settings = json.dumps(self._own_settings(), sort_keys=True)
        return hashlib.sha256(settings.encode()).hexdigest()

    def _own_settings(self) -> dict[str, str]:
        return {
            **airflow_settings(self.home.state, self._postgres, folder=self._folder, url=self.url),
            **self._connections(),
            **self.settings,
        }

    @property
    def _folder(self) -> Path:
        return self.home.folder("airflow")

    def _write_passwords(self) -> None:
        # Before the first start: Airflow would generate and print its own.
        passwords = {user: self.password(user) for user in ROLES}
        write_private(passwords_file(self._folder), json.dumps(passwords))

    def _migrate(self) -> None:
        """Bring Airflow's tables up to the installed version, once: it takes seconds."""
        version = importlib.metadata.version("apache-airflow")
        if self.home.state.fact("airflow_migrated") == version:
            return
        log = self.home.folder("logs") / "airflow-migrate.log"
        with log.open("ab") as out:
            done = subprocess.run(
                [program("airflow"), "db", "migrate"],
                env=self.environment(),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                check=False,
            )
        if done.returncode != 0:
            raise ServiceFailed("airflow", "could not migrate its database", log)
        self.home.state.replace("airflow_migrated", version)
