"""Airflow's REST API in a few verbs, for the demo and the tests. Decides nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_fixed

from sandbox.errors import SandboxError

ANSWER_SECONDS = 30.0
ENDED = ("success", "failed")


class AirflowRefused(SandboxError):
    """Airflow answered, and said no; the text is Airflow's."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a run as it stands now."""

    name: str
    """With [index] for a mapped one."""
    task_id: str
    map_index: int
    state: str | None
    try_number: int
    pid: int | None
    seconds: float | None


class AirflowRest:
    """One user's session with one Airflow."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self._login = {"username": user, "password": password}
        self._client = httpx.Client(base_url=url, timeout=ANSWER_SECONDS, trust_env=False)

    def close(self) -> None:
        """End the session."""
        self._client.close()

    @retry(
        retry=retry_if_exception_type(httpx.TransportError),
        stop=stop_after_attempt(4),
        wait=wait_fixed(1),
        reraise=True,
    )
    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """The answer to a question, which may be asked again; raises AirflowRefused."""
        return self._ask("GET", path, params=query)

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to an order; raises AirflowRefused."""
        return self._ask("POST", path, json=body)

    def patch(self, path: str, body: Mapping[str, Any], **query: Any) -> dict[str, Any]:
        """The answer to a change; raises AirflowRefused."""
        return self._ask("PATCH", path, json=body, params=query)

    def import_errors(self) -> dict[str, str]:
        """What is wrong in DAG files: file and traceback."""
        found = self.get("/importErrors")["import_errors"]
        return {each["filename"]: each["stack_trace"] for each in found}

    def wait_for_dag(self, dag_id: str, seconds: float = 120.0) -> None:
        """Return when Airflow knows the DAG. Raises SandboxError with the import errors."""
        deadline = time.monotonic() + seconds
        while dag_id not in self.dag_ids():
            if time.monotonic() > deadline:
                errors = "\n".join(self.import_errors().values()) or "no import error is known"
                raise SandboxError(
                    f"Airflow does not know the DAG {dag_id} after {seconds:.0f} s: {errors}"
                )
            time.sleep(0.5)

    def dag_ids(self) -> set[str]:
        """The DAGs that Airflow knows and that are in their files still."""
        return {each["dag_id"] for each in self.get("/dags", limit=1000)["dags"]}

    def pause(self, dag_id: str, is_paused: bool) -> None:
        """Let the DAG's runs start, or not."""
        self.patch(f"/dags/{dag_id}", {"is_paused": is_paused}, update_mask="is_paused")

    def trigger(
        self,
        dag_id: str,
        conf: Mapping[str, Any] | None = None,
        interval: tuple[datetime, datetime] | None = None,
    ) -> str:
        """Start a run by hand; its id."""
        body: dict[str, Any] = {"logical_date": None, "conf": dict(conf or {})}
        if interval:
            start, end = (each.isoformat() for each in interval)
            body |= {"logical_date": start, "data_interval_start": start, "data_interval_end": end}
        return str(self.post(f"/dags/{dag_id}/dagRuns", body)["dag_run_id"])

    def due_interval(self, dag_id: str) -> tuple[datetime, datetime] | None:
        """The interval for which Airflow starts a run when the DAG is unpaused.

        None if none is due yet, or if the DAG is not paused: then the run is being started already.
        """
        found = self.get(f"/dags/{dag_id}")
        if not found["is_paused"] or not found["next_dagrun_run_after"]:
            return None
        run_after, start, end = (
            datetime.fromisoformat(found[f"next_dagrun_{name}"])
            for name in ("run_after", "data_interval_start", "data_interval_end")
        )
        return (start, end) if run_after <= datetime.now(tz=UTC) else None

    def runs(self, dag_id: str) -> Mapping[str, str]:
        """The state of every run of the DAG, oldest first."""
        found = self.get(f"/dags/{dag_id}/dagRuns", limit=1000, order_by="id")["dag_runs"]
        return {each["dag_run_id"]: each["state"] for each in found}

    def run_state(self, dag_id: str, run_id: str) -> str:
        """The run's state."""
        return str(self.get(f"/dags/{dag_id}/dagRuns/{quote(run_id)}")["state"])

    def tasks(self, dag_id: str, run_id: str) -> Sequence[Task]:
        """The run's tasks; mapped ones once they are expanded."""
        path = f"/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances"
        return [
            Task(
                name=each["task_id"] + (f"[{each['map_index']}]" if each["map_index"] >= 0 else ""),
                task_id=each["task_id"],
                map_index=each["map_index"],
                state=each["state"],
                try_number=each["try_number"],
                pid=each["pid"],
                seconds=each["duration"],
            )
            for each in self.get(path, limit=1000)["task_instances"]
        ]

    def log(self, dag_id: str, run_id: str, task: Task, try_number: int | None = None) -> list[str]:
        """The lines of a task's log, a traceback as part of its line."""
        number = task.try_number if try_number is None else try_number
        path = f"/dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task.task_id}/logs/{number}"
        content = self.get(path, map_index=task.map_index, full_content=True)["content"]
        return [f"{each.get('event', each)} {each.get('error_detail', '')}" for each in content]

    def _ask(self, verb: str, path: str, **parts: Any) -> dict[str, Any]:
        answer = self._client.request(verb, f"/api/v2{path}", **parts)
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            token = self._client.post("/auth/token", json=self._login)
            if token.status_code != httpx.codes.CREATED:
                raise AirflowRefused(f"Airflow refuses the login of {self._login['username']}")
            self._client.headers["Authorization"] = f"Bearer {token.json()['access_token']}"
            answer = self._client.request(verb, f"/api/v2{path}", **parts)
        if answer.is_error:
            raise AirflowRefused(f"{verb} {path}: HTTP {answer.status_code}: {answer.text}")
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found
