"""A running Airflow with feeds of the test's own, and what landed through it, seen from outside."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import requests
import yaml

from sandbox import Sandbox
from sandbox.airflow_rest import ENDED, AirflowRest, Task
from tallystick.domain.batches.paths import SCRUB_NAME, STAGING_NAME
from tallystick.domain.identities import FeedName
from tallystick.ledger.batches import BatchRecord
from tallystick.ledger.ledger import Ledger
from tests.support.kafka_records import Record, records_in
from tests.support.landed_files import names_below, names_in, rows_in

ROOT = "/airflow-tests"
RUN_SECONDS = 240.0
POLL_SECONDS = 0.3
LOG_END = 3000
# A killed task is missed after half a minute: tests wait for it.
SOON_MISSED = {
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
}


HOUR_BEGAN = datetime.now(tz=UTC).replace(second=0, microsecond=0) - timedelta(minutes=5)
"""When the schedules' present hour began: none ends while a test counts what its own run landed."""


def a_feed(name: str, **parts: Any) -> dict[str, Any]:
    """A feed file's content; the topic bears the feed's name."""
    return {
        "feed": name,
        "source": {"topic": name},
        "schedule": {"cron": f"{HOUR_BEGAN.minute} * * * *", "start_date": "2026-11-01"},
        "target": {"root": ROOT, "replication": 1},
        "spark": {"pool": "spark_local"},
    } | parts


def until(what: str, answer: Callable[[], Any], seconds: float = RUN_SECONDS) -> Any:
    """The first answer that is true; AssertionError when there is none in time."""
    deadline = time.monotonic() + seconds
    while not (found := answer()):
        assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}"
        time.sleep(POLL_SECONDS)
    return found


@dataclass(frozen=True)
class Run:
    """One run of a DAG, as Airflow's REST API shows it."""

    rest: AirflowRest
    dag_id: str
    run_id: str

    def end(self, seconds: float = RUN_SECONDS) -> str:
        """The run's state, once it has ended."""

        def ended() -> str | None:
            state = self.rest.run_state(self.dag_id, self.run_id)
            return state if state in ENDED else None

        return str(until(f"{self.dag_id} {self.run_id} has ended", ended, seconds))

    def succeeds(self, seconds: float = RUN_SECONDS) -> Run:
        """Itself, once it has ended well; what has not is said with the end of its log."""
        try:
            state = self.end(seconds)
        except AssertionError as late:
            state = str(late)
        if state != "success":
            tried = {name: task for name, task in self.tasks().items() if task.try_number > 0}
            unwell = [name for name, task in tried.items() if task.state != "success"]
            logs = [f"{name}:\n{self.log(name)[-LOG_END:]}" for name in unwell]
            raise AssertionError("\n".join([f"{self.dag_id}, {state}: {self.states()}", *logs]))
        return self

    def tasks(self) -> Mapping[str, Task]:
        """Its tasks by name, mapped ones with [index]."""
        return {each.name: each for each in self.rest.tasks(self.dag_id, self.run_id)}

    def states(self) -> Mapping[str, str | None]:
        """The state of each task."""
        return {name: task.state for name, task in self.tasks().items()}

    def ran(self) -> list[str]:
        """The tasks that were started."""
        return [name for name, task in self.tasks().items() if task.try_number > 0]

    def log(self, task: str, try_number: int | None = None) -> str:
        """A task's whole log."""
        return "\n".join(self.rest.log(self.dag_id, self.run_id, self.tasks()[task], try_number))


class AirflowPlace:
    """Airflow, with these feeds and nothing else in its folder."""

    def __init__(self, sandbox: Sandbox, folder: Path, feeds: Mapping[str, dict[str, Any]]) -> None:
        for name, content in feeds.items():
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
        self._airflow = sandbox.airflow
        self._airflow.settings["TALLYSTICK_FEEDS"] = str(folder)
        self._airflow.settings.update(SOON_MISSED)
        sandbox.up()
        self.spark_connect = sandbox.spark_connect
        self.env = sandbox.env()
        self.kafka = self.env["KAFKA_BOOTSTRAP_SERVERS"]
        self.rest = AirflowRest(
            self.env["AIRFLOW_URL"], self.env["AIRFLOW_USER"], self.env["AIRFLOW_PASSWORD"]
        )
        for name in feeds:
            self.rest.wait_for_dag(f"ingest_{name}")

    def close(self) -> None:
        """Stop Airflow: at rest, it would take a third of a processor from every later test."""
        del self._airflow.settings["TALLYSTICK_FEEDS"]
        try:
            self.rest.close()
        finally:
            self._airflow.stop()

    def start(self, dag_id: str, **conf: Any) -> Run:
        """A run by hand, alone: in the place of the one that the schedule would start first."""
        run_id = self.rest.trigger(dag_id, conf, self.rest.due_interval(dag_id))
        self.rest.pause(dag_id, is_paused=False)
        return Run(self.rest, dag_id, run_id)

    def runs(self, dag_id: str) -> list[Run]:
        """Every run of the DAG."""
        return [Run(self.rest, dag_id, run_id) for run_id in self.rest.runs(dag_id)]

    def backfilled(self, dag_id: str) -> list[Run]:
        """The runs that a backfill has made of the DAG."""
        return [each for each in self.runs(dag_id) if each.run_id.startswith("backfill__")]

    def batches(self, feed: str) -> list[BatchRecord]:
        """The feed's batches in the ledger."""
        with contextlib.closing(Ledger(self.env["LEDGER_DSN"])) as ledger:
            return list(ledger.batches(FeedName(feed)))

    def open_findings(self, feed: str) -> str:
        """The numbers of the feed's findings, as a repair's form has them."""
        with contextlib.closing(Ledger(self.env["LEDGER_DSN"])) as ledger:
            return ", ".join(str(each.finding_id) for each in ledger.findings(FeedName(feed)))

    def rows(self, feed: str) -> list[Record]:
        """Every row that readers of the plain tree see, doubles included, sorted by place."""
        found = [row for batch in self._directories(feed) for row in rows_in(self._web, batch)]
        return sorted(found, key=lambda each: (each.partition, each.offset))

    def staged(self, feed: str) -> list[str]:
        """Every file that attempts at the feed's batches have in staging now."""
        plans = [each.status.plan for each in self.batches(feed)]
        return [
            name
            for plan in plans
            for name in names_below(self._web, f"{plan.root}/{STAGING_NAME}/{plan.batch_id}")
        ]

    def full_reads(self, feed: str) -> list[str]:
        """Every file that full reads of the feed's files keep now."""
        return names_below(self._web, f"{ROOT}/{SCRUB_NAME}/{feed}")

    def produced(
        self, topic: str, until_offsets: Mapping[int, int], isolation: str = "read_committed"
    ) -> list[Record]:
        """What librdkafka reads of the topic's partitions, up to the given ends."""
        ranges = {partition: (0, end) for partition, end in until_offsets.items()}
        return records_in(self.kafka, topic, ranges, isolation)

    def lose_a_file(self, feed: str) -> str:
        """The path of a landed file that was there a moment ago."""
        path = next(
            f"{directory}/{name}"
            for directory in self._directories(feed)
            for name in self._names(directory)
            if name.endswith(".parquet")
        )
        answer = requests.delete(
            f"{self._web}/webhdfs/v1{path}",
            params={"op": "DELETE", "user.name": "root"},
            timeout=30,
        )
        answer.raise_for_status()
        return path

    def _directories(self, feed: str) -> Iterator[str]:
        """The directories of published batches: gen=, dt=, hour=, batch=."""
        found = [f"{ROOT}/{feed}"]
        for _ in range(4):
            found = [f"{path}/{name}" for path in found for name in self._names(path)]
        yield from found

    def _names(self, path: str) -> list[str]:
        try:
            return names_in(self._web, path)
        except requests.HTTPError as failure:
            if failure.response.status_code != requests.codes.not_found:
                raise
            return []

    @property
    def _web(self) -> str:
        return self.env["WEBHDFS_URL"]


def drivers_of(feed: str) -> list[psutil.Process]:
    """The processes of the feed's Spark applications: JVMs, and the Python drivers below them."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(word.startswith(f"tallystick {feed} ") for word in process.cmdline()):
                found += [process, *process.children(recursive=True)]
    return found
