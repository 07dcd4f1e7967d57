"""The stack of docker-compose.yml on a real engine, in ports and volumes of its own."""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml

from sandbox.airflow_rest import AirflowRest
from sandbox.entry.engine import Engine, ensure_engine, running
from tests.support.airflow_place import Run
from tests.support.free_port import free_port
from tests.support.repository import DOCS, ROOT

PROJECT = "tallystick-test"
# Each base image, and the stage that is its stand-in (sandbox/compose/stand_ins).
BASE_IMAGES = {
    name: name.partition(":")[0]
    for name in (
        "maven:3.9-eclipse-temurin-17",
        "eclipse-temurin:17-jre",
        "python:3.11-slim-bookworm",
        "postgres:18.6",
    )
}
UP = ("up", "--build", "--wait")
ANSWER_SECONDS = 60.0


@dataclass(frozen=True)
class Stack:
    """What somebody with a checkout, an `.env` and an engine has."""

    engine: Engine
    files: Sequence[Path]
    env_file: Path
    secrets: Mapping[str, str]
    airflow_port: int = field(default_factory=free_port)
    kafka_port: int = field(default_factory=free_port)
    sessions: dict[str, AirflowRest] = field(default_factory=dict)
    """By user, as they are opened."""

    @property
    def airflow_url(self) -> str:
        """Where the host reaches Airflow."""
        return f"http://127.0.0.1:{self.airflow_port}"

    @property
    def kafka(self) -> str:
        """Where the host reaches Kafka."""
        return f"127.0.0.1:{self.kafka_port}"

    def compose(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`docker compose` with these arguments, however it ends."""
        files = [part for each in self.files for part in ("--file", str(each))]
        argv = ["docker", "compose", "--project-name", PROJECT, "--env-file", str(self.env_file)]
        ports = {"AIRFLOW_PORT": str(self.airflow_port), "KAFKA_PORT": str(self.kafka_port)}
        return subprocess.run(
            [*argv, *files, *arguments],
            cwd=ROOT,
            env={**self.engine.environment, **ports},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def must(self, *arguments: str) -> str:
        """What `docker compose` says; AssertionError with all of it unless it succeeds."""
        done = self.compose(*arguments)
        assert done.returncode == 0, (arguments, done.stdout[-4000:], done.stderr[-4000:])
        return done.stdout

    def tallystick(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The command line, as docs/install.md calls it."""
        return self.compose("exec", "-T", "scheduler", "python", "-m", "tallystick", *arguments)

    def states(self) -> dict[str, str]:
        """Each service, and how it is: its health, or its exit code."""
        lines = self.must("ps", "--all", "--format", "json").splitlines()
        return {
            each["Service"]: each["Health"] or f"{each['State']} {each['ExitCode']}"
            for each in map(json.loads, lines)
        }

    def rest(self, user: str = "admin") -> AirflowRest:
        """Airflow, as one of its users."""
        if user not in self.sessions:
            password = self.secrets[f"AIRFLOW_{user.upper()}_PASSWORD"]
            self.sessions[user] = AirflowRest(self.airflow_url, user, password)
        return self.sessions[user]

    def page(self, user: str, verb: str, path: str, **body: str) -> Any:
        """The JSON of the page in Airflow, for a user."""
        login = {"username": user, "password": self.secrets[f"AIRFLOW_{user.upper()}_PASSWORD"]}
        with httpx.Client(
            base_url=self.airflow_url, timeout=ANSWER_SECONDS, trust_env=False
        ) as client:
            token = client.post("/auth/token", json=login).raise_for_status().json()["access_token"]
            answer = client.request(
                verb,
                f"/tallystick/api{path}",
                json=body or None,
                headers={"Authorization": f"Bearer {token}"},
            )
        assert answer.is_success, answer.text
        return answer.json()

    def run_of(self, dag_id: str) -> Run:
        """A run of the DAG that has ended well, triggered and unpaused by a user."""
        rest = self.rest()
        rest.wait_for_dag(dag_id)
        run = Run(rest, dag_id, rest.trigger(dag_id, interval=rest.due_interval(dag_id)))
        rest.pause(dag_id, is_paused=False)
        return run.succeeds()


@contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """The stack, not up yet; all of it is deleted behind the block."""
    engine = ensure_engine()
    files = [ROOT / "docker-compose.yml"]
    if engine.folder is not None:  # which has no way to registries but the machine's own
        built = yaml.safe_load(files[0].read_text())["services"]
        network = {name: {"build": {"network": "host"}} for name in built if "build" in built[name]}
        files.append(folder / "network.yml")
        files[1].write_text(yaml.safe_dump({"services": network}))
    given = _filled_in()
    env_file = folder / ".env"
    env_file.touch(mode=0o600)
    env_file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    made = Stack(engine, files, env_file, given)
    with running(engine, BASE_IMAGES):
        made.compose("down", "--volumes", "--timeout", "5")  # of a run that was killed
        try:
            yield made
        finally:
            for each in made.sessions.values():
                each.close()
            made.compose("down", "--volumes", "--timeout", "5")


def _filled_in() -> dict[str, str]:
    """Every line of the example, filled in as it says."""
    names = [
        line.removesuffix("=")
        for line in (DOCS / "compose.env.example").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    found = {name: secrets.token_urlsafe(64) for name in names}
    fernet = base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    return {**found, "AIRFLOW_FERNET_KEY": fernet}
