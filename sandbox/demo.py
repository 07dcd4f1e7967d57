"""``./tallystick demo``: the whole way on this machine, through Airflow, with a report at its end.

Starts what does not run, fills the topics of the sample feeds, has Airflow land and reconcile
them. May be run again at once: then a little more is written and landed.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.status import Status

from sandbox.airflow_rest import ENDED, AirflowRest, Task
from sandbox.demo_topics import CLICKS, ORDERS, PARTITIONS, fill
from sandbox.entry.console import SetupFailed
from sandbox.entry.layout import ROOT
from sandbox.errors import SandboxError
from sandbox.stack import Sandbox

FEEDS = (ORDERS, CLICKS)
RUN_SECONDS = 600.0
POLL_SECONDS = 1.0
LOG_LINES = 12
FAILED, WRONG_USE = 1, 2
QUIET_STATES = (None, "scheduled", "queued", "removed")

narrator = Console(stderr=True, soft_wrap=True, highlight=False)
reader = Console(soft_wrap=True, highlight=False)


@dataclass
class Watched:
    """A run that is waited for."""

    dag_id: str
    run_id: str
    told: dict[str, str] = field(default_factory=dict)
    """States of tasks that were told already."""
    tasks: Sequence[Task] = ()
    state: str = "queued"

    @property
    def is_over(self) -> bool:
        """True when nothing of it will change any more."""
        return self.state in ENDED

    @property
    def has_failed(self) -> bool:
        """True when it ended otherwise than well; a run that still waits for its turn has not."""
        return self.is_over and self.state != "success"

    def at_work(self) -> list[str]:
        """Its tasks that run now."""
        return [f"{self.dag_id} {each.name}" for each in self.tasks if each.state == "running"]


class Demo:
    """One run of the demo."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._began = time.monotonic()

    def run(self) -> int:
        """The exit code: 0 when all was landed and reconciled."""
        with narrator.status("starting services"):
            self._sandbox.up(report=self._tell)
        env = self._sandbox.env()
        with narrator.status("writing sample records"):
            amount = fill(env["KAFKA_BOOTSTRAP_SERVERS"])
        self._tell(
            f"{_grouped(amount.visible)} records are written to {' and '.join(FEEDS)},"
            f" {PARTITIONS} partitions each;"
            f" {_grouped(PARTITIONS * amount.aborted)} more were aborted"
        )
        login = env["AIRFLOW_URL"], env["AIRFLOW_USER"], env["AIRFLOW_PASSWORD"]
        with contextlib.closing(AirflowRest(*login)) as rest:
            is_good = self._land_and_reconcile(rest)
        is_good = self._report() and is_good
        self._say_where(env)
        return 0 if is_good else FAILED

    def _land_and_reconcile(self, rest: AirflowRest) -> bool:
        began = datetime.now(UTC)
        is_good = self._carry_out(rest, "ingest")
        with ThreadPoolExecutor() as pool:
            counting = pool.submit(self._say_what_was_landed, began)
            is_good = self._carry_out(rest, "reconcile") and is_good
            counting.result()
        return is_good

    def _say_what_was_landed(self, began: datetime) -> None:
        with ThreadPoolExecutor() as pool:
            rows = pool.map(lambda feed: _rows_since(began, feed), FEEDS)
        landed = [
            f"{_grouped(count)} records of {feed}" for count, feed in zip(rows, FEEDS, strict=True)
        ]
        self._tell(f"landed {', '.join(landed)}")

    def _carry_out(self, rest: AirflowRest, kind: str) -> bool:
        """Trigger a DAG of every feed, wait for their runs; True if all succeeded."""
        runs = []
        for feed in FEEDS:
            dag_id = f"{kind}_{feed}"
            rest.wait_for_dag(dag_id)
            # In the place of the run that the schedule would start now, and that would be first.
            run_id = rest.trigger(dag_id, interval=rest.due_interval(dag_id))
            runs.append(Watched(dag_id, run_id))
            rest.pause(dag_id, is_paused=False)
            self._tell(f"{dag_id} is triggered in Airflow")
        runs += self._wait_for(rest, runs)
        failed = [each for each in runs if each.has_failed]
        for each in failed:
            self._explain(rest, each)
        return not failed

    def _wait_for(self, rest: AirflowRest, ours: Sequence[Watched]) -> list[Watched]:
        """Return when our runs have ended; the runs that the schedule started in the meantime.

        A DAG has one run at a time. Those before ours are over then, and may have landed what ours
        would have; those behind ours may still be waiting for their turn.
        """
        deadline = time.monotonic() + RUN_SECONDS
        others: list[Watched] = []
        with narrator.status("waiting for Airflow") as status:
            while not all(each.is_over for each in ours):
                if time.monotonic() > deadline:
                    names = ", ".join(each.dag_id for each in ours if not each.is_over)
                    raise SandboxError(
                        f"{names} did not end within {RUN_SECONDS:.0f} s. Next: look at the runs "
                        f"in Airflow, and at {self._sandbox.airflow.scheduler.log}"
                    )
                others += self._newcomers(rest, [*ours, *others])
                for each in [*ours, *others]:
                    self._look_at(rest, each)
                self._show(status, [*ours, *others])
                time.sleep(POLL_SECONDS)
        return others

    def _newcomers(self, rest: AirflowRest, known: Sequence[Watched]) -> list[Watched]:
        run_ids = {each.run_id for each in known}
        found = [
            Watched(dag_id, run_id)
            for dag_id in sorted({each.dag_id for each in known})
            for run_id, state in rest.runs(dag_id).items()
            if state not in ENDED and run_id not in run_ids
        ]
        for each in found:
            self._tell(f"{each.dag_id} is also started by its schedule")
        return found

    def _look_at(self, rest: AirflowRest, run: Watched) -> None:
        if run.is_over:
            return
        # The state first: what is asked after it can only be newer.
        state = rest.run_state(run.dag_id, run.run_id)
        run.tasks = rest.tasks(run.dag_id, run.run_id)
        for task in run.tasks:
            if task.state in QUIET_STATES or run.told.get(task.name) == task.state:
                continue
            run.told[task.name] = str(task.state)
            if task.state != "running" or not narrator.is_terminal:
                took = f" ({task.seconds:.0f} s)" if task.seconds and task.state in ENDED else ""
                self._tell(f"{run.dag_id} {task.name}: {task.state}{took}")
        run.state = state

    @staticmethod
    def _show(status: Status, runs: Sequence[Watched]) -> None:
        at_work = [name for each in runs for name in each.at_work()]
        status.update(f"running: {', '.join(at_work)}" if at_work else "waiting for Airflow")

    def _explain(self, rest: AirflowRest, run: Watched) -> None:
        """Say that the run failed, which of its tasks did, and how their logs end."""
        self._tell(f"{run.dag_id} ended as {run.state}: run {run.run_id}")
        for task in run.tasks:
            if task.state != "failed":
                continue
            self._tell(f"{run.dag_id} {task.name} failed. Its log: {self._log_of(run, task)}")
            for line in rest.log(run.dag_id, run.run_id, task)[-LOG_LINES:]:
                narrator.print(f"    {line}", markup=False)

    def _log_of(self, run: Watched, task: Task) -> Path:
        folder = self._sandbox.home.folder("airflow", "logs") / f"dag_id={run.dag_id}"
        folder = folder / f"run_id={run.run_id}" / f"task_id={task.task_id}"
        if task.map_index >= 0:
            folder /= f"map_index={task.map_index}"
        return folder / f"attempt={task.try_number}.log"

    @staticmethod
    def _report() -> bool:
        """Show what a person would be told of each feed; True where nothing was found."""
        with narrator.status("reconciling"), ThreadPoolExecutor() as pool:
            reports = list(pool.map(lambda feed: _tallystick("reconcile", feed), FEEDS))
        for feed, done in zip(FEEDS, reports, strict=True):
            reader.print(f"\n$ ./tallystick reconcile {feed}", style="bold", markup=False)
            reader.file.write(done.stdout)
            if code := done.returncode:
                narrator.print(done.stderr, markup=False)
                narrator.print(f"./tallystick reconcile {feed} ended with exit code {code}")
        return not any(each.returncode for each in reports)

    def _say_where(self, env: Mapping[str, str]) -> None:
        listing = f"{env['WEBHDFS_URL']}/webhdfs/v1/data/landing?op=LISTSTATUS"
        where = {
            "Airflow": f"{env['AIRFLOW_URL']}   user {env['AIRFLOW_USER']}, "
            f"password {env['AIRFLOW_PASSWORD']}",
            "": f"and, as a waiver takes two people, user {env['AIRFLOW_SECOND_USER']}, "
            f"password {env['AIRFLOW_SECOND_PASSWORD']}",
            "Files": f"{env['HDFS_URL']}/data/landing   by HTTP: {listing}",
            "Kafka": env["KAFKA_BOOTSTRAP_SERVERS"],
            "Ledger": f"./tallystick batches {FEEDS[0]}   ./tallystick files {FEEDS[0]}",
            "Again": "./tallystick demo   writes a little more and lands it",
            "Stop": "./tallystick sandbox down",
        }
        reader.print()
        for name, text in where.items():
            reader.print(f"{name:8} {text}", markup=False)

    def _tell(self, text: str) -> None:
        seconds = time.monotonic() - self._began
        narrator.print(f"{seconds:6.1f} s  {text}", markup=False)


def _tallystick(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the package, run as a person would, with all that it says."""
    # Its lines go to where ours go: it writes as for this terminal, if it is one.
    looks = {"FORCE_COLOR": "1", "COLUMNS": str(reader.width)} if reader.is_terminal else {}
    return subprocess.run(
        [ROOT / "tallystick", *arguments],
        env={**os.environ, **looks},
        capture_output=True,
        text=True,
        check=False,
    )


def _rows_since(instant: datetime, feed: str) -> int:
    """How many rows of the feed were committed since then."""
    done = _tallystick("batches", feed, "--json")
    if done.returncode != 0:
        raise SandboxError(f"./tallystick batches {feed} failed: {done.stderr}{done.stdout}")
    found: Sequence[Mapping[str, Any]] = json.loads(done.stdout)["batches"]
    return sum(
        each["rows"]
        for each in found
        if each["committed_at"] and datetime.fromisoformat(each["committed_at"]) >= instant
    )


def main() -> None:
    """Run the demo; what goes wrong is told in plain words."""
    sandbox = Sandbox()
    try:
        code = Demo(sandbox).run()
    except (SandboxError, SetupFailed) as failure:
        narrator.print(str(failure), markup=False)
        raise SystemExit(WRONG_USE) from failure
    except httpx.HTTPError as failure:
        narrator.print(
            f"Airflow does not answer: {failure}. Its log: {sandbox.airflow.api_server.log}. "
            "Next: ./tallystick sandbox status",
            markup=False,
        )
        raise SystemExit(WRONG_USE) from failure
    raise SystemExit(code)


def _grouped(count: int) -> str:
    """The count in the product's own style."""
    return f"{count:,}".replace(",", " ")


if __name__ == "__main__":
    main()
