"""Looks for planted secrets wherever a stranger, or another user of a service, could look."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping

import psutil
import psycopg
import requests

from tallystick.ledger.exporting import exported

PLAN_POLL_SECONDS = 0.1
"""A plan of a small landing lies there for a second or two."""
PROCESS_POLL_SECONDS = 0.5


class Watch(threading.Thread):
    """Looks at all processes' arguments, at what children of ours have in their environment, and at
    the plans that lie in HDFS, until it is stopped.
    """

    def __init__(self, webhdfs_url: str, staging: str) -> None:
        super().__init__(daemon=True)
        self._staging = f"{webhdfs_url}/webhdfs/v1{staging}"
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self.arguments: set[str] = set()
        self.plans: set[str] = set()
        self.environments: set[str] = set()
        """Of what a program of Tallystick's has started: Spark, and what Spark starts."""

    def run(self) -> None:
        try:
            self._watch()
        except Exception as failure:  # noqa: BLE001 - raised where the watch is stopped
            self._failure = failure

    def _watch(self) -> None:
        looked = 0.0
        while not self._ended.wait(PLAN_POLL_SECONDS):
            if time.monotonic() - looked >= PROCESS_POLL_SECONDS:
                self._look_at_processes()
                looked = time.monotonic()
            self._look_at_plans()

    def _look_at_processes(self) -> None:
        for process in psutil.process_iter(["cmdline"]):
            line = " ".join(process.info["cmdline"] or ())
            self.arguments.add(line)
            if "SparkSubmit" in line or "spark_jobs" in line or "executor" in line.lower():
                with contextlib.suppress(psutil.Error):
                    self.environments.add(str(process.environ()))

    def _look_at_plans(self) -> None:
        for batch in self._names(self._staging):
            for attempt in self._names(f"{self._staging}/{batch}"):
                path = f"{self._staging}/{batch}/{attempt}/plan.json"
                answer = requests.get(path, {"op": "OPEN"}, timeout=10)
                if answer.ok:
                    self.plans.add(answer.text)

    def _names(self, url: str) -> list[str]:
        answer = requests.get(url, {"op": "LISTSTATUS"}, timeout=10)
        if not answer.ok:
            return []
        return [each["pathSuffix"] for each in answer.json()["FileStatuses"]["FileStatus"]]

    def stop(self) -> None:
        self._ended.set()
        self.join()
        if self._failure is not None:
            raise self._failure


@contextlib.contextmanager
def watched(webhdfs_url: str, root: str) -> Iterator[Watch]:
    """A watch over the feed whose root this is."""
    watch = Watch(webhdfs_url, f"{root}/_staging")
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


def hdfs_texts(webhdfs_url: str, path: str, user: str = "root") -> Iterator[str]:
    """Every file below the path, as this user may read it."""
    url = f"{webhdfs_url}/webhdfs/v1{path.rstrip('/')}"
    query = {"user.name": user}
    listed = requests.get(url, {"op": "LISTSTATUS", **query}, timeout=10)
    listed.raise_for_status()
    for each in listed.json()["FileStatuses"]["FileStatus"]:
        below = f"{path.rstrip('/')}/{each['pathSuffix']}"
        if each["type"] == "DIRECTORY":
            yield from hdfs_texts(webhdfs_url, below, user)
        else:
            answer = requests.get(
                f"{webhdfs_url}/webhdfs/v1{below}", {"op": "OPEN", **query}, timeout=10
            )
            answer.raise_for_status()
            yield answer.content.decode("latin-1")


def ledger_texts(dsn: str) -> Iterator[str]:
    """Every row of every table, and all that is compressed there, as an export has it."""
    yield from database_texts(dsn)
    for each in exported(dsn, None):
        yield each.line


def database_texts(dsn: str) -> Iterator[str]:
    """Every row of every table."""
    tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    with psycopg.connect(dsn) as ledger:
        for (table,) in ledger.execute(tables).fetchall():
            yield str(ledger.execute(f'SELECT * FROM "{table}"').fetchall())


def assert_hidden(texts: Mapping[str, str], *secrets: str) -> None:
    for place, text in texts.items():
        for number, secret in enumerate(secrets):
            at = text.find(secret)
            assert at < 0, f"secret {number} is in {place}: ...{text[max(0, at - 200) : at]}"
