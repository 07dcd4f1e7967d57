"""A feed on real services: Kafka, HDFS, ledger, and Spark in a warm session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import requests

from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.batches.paths import PROBE_PREFIX, BatchPath
from tallystick.domain.finding_codes import Level
from tallystick.domain.identities import Owner
from tallystick.domain.rows.scrub import ScrubPlan, ScrubResult
from tallystick.domain.window import Window
from tallystick.errors import ApplicationFailed, ScrubFailed
from tallystick.ports.spark_runner import LandingOrder, ScrubOrder, SparkRunner
from tallystick.settings.connections import connection_in
from tallystick.settings.feed import Feed
from tallystick.spark import searching
from tallystick.spark.causes import cause_of
from tallystick.spark.landing import land
from tallystick.spark.scrubbing import scrub, write_result
from tallystick.wiring.adapters import open_services
from tallystick.workflows.landing.run import RunReport, land_feed
from tallystick.workflows.reconciling.reconcile_report import ReconcileReport
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.services import Services
from tests.support.kafka_records import Record, records_in
from tests.support.landed_files import names_in, rows_in
from tests.support.spark_place import PLACE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Hook = Callable[[LandingPlan], None]


def environ_of(
    kafka: str, hdfs: Any, ledger_dsn: str, connect_address: str | None = None
) -> dict[str, str]:
    """What names these services; Spark is a local master, or a server at `sc://host:port`."""
    spark = (
        {"SPARK_MASTER": PLACE.master}
        if connect_address is None
        else {"AIRFLOW_CONN_SPARK_DEFAULT": connect_address.replace("sc://", "spark-connect://")}
    )
    return {
        "KAFKA_BOOTSTRAP_SERVERS": kafka,
        "WEBHDFS_URL": hdfs.webhdfs_url,
        "HDFS_URL": hdfs.hdfs_url,
        "LEDGER_DSN": ledger_dsn,
        **spark,
    }


@dataclass
class SessionRunner:
    """Runs the landing function in a warm session: the port's second way, as Spark Connect will."""

    spark: SparkSession
    before: Hook = lambda plan: None
    after: Hook = lambda plan: None
    told: Callable[[LandingPlan], LandingPlan] = lambda plan: plan
    """What the landing is told instead of the plan: a job that does something else."""

    @property
    def longest_orphan(self) -> timedelta:
        """None: the session is this process's."""
        return timedelta(0)

    def interrupt(self, attempt_id: str) -> bool:
        """Nothing: the session is this process's."""
        return True

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        text = self.spark.read.text(order.plan_uri, wholetext=True).head()
        assert text is not None
        plan = LandingPlan.from_json(text["value"])
        started(f"session-{order.attempt_id[:8]}")
        self.before(plan)
        try:
            land(self.spark, self.told(plan))
        except Exception as error:
            cause = cause_of(str(error))
            raise ApplicationFailed(order.batch_id, order.attempt_id, cause) from error
        self.after(plan)

    def search(self, order: LandingOrder, *, noted: Callable[[str], None]) -> None:
        text = self.spark.read.text(order.plan_uri, wholetext=True).head()
        assert text is not None
        plan = searching.plan_of(text["value"])
        try:
            searching.write_result(self.spark, plan, searching.search(self.spark, plan, noted))
        except Exception as error:
            cause = cause_of(str(error))
            raise ApplicationFailed(order.batch_id, order.attempt_id, cause) from error

    def scrub(self, order: ScrubOrder) -> ScrubResult:
        text = self.spark.read.text(order.plan_uri, wholetext=True).head()
        assert text is not None
        plan = ScrubPlan.from_json(text["value"])
        try:
            write_result(self.spark, plan, scrub(self.spark, plan))
        except Exception as error:
            cause = cause_of(str(error))
            raise ScrubFailed(order.scrub_id, "session", cause) from error
        return order.written()


@dataclass
class Way:
    """One feed from its topic to its directory."""

    topic: str
    environ: Mapping[str, str]
    spark: SparkSession | None = None
    """None: the feed's connection says what lands it."""
    name: str = field(default_factory=lambda: f"feed-{uuid4().hex[:8]}")

    @property
    def root(self) -> str:
        return f"/way/{self.name}"

    def feed(self, *, source: Mapping[str, Any] | None = None, **parts: Any) -> Feed:
        return Feed.model_validate(
            {
                "feed": self.name,
                "source": {"topic": self.topic} | dict(source or {}),
                "schedule": {"cron": "0 * * * *", "start_date": datetime(2026, 11, 1, tzinfo=UTC)},
                "target": {"root": self.root, "replication": 1},
            }
            | parts
        )

    @contextmanager
    def services(
        self, runner: SparkRunner | None = None, feed: Feed | None = None, **changes: Any
    ) -> Iterator[Services]:
        with open_services(
            feed or self.feed(),
            lambda conn_id: connection_in(self.environ, conn_id),
            spark=runner or (SessionRunner(self.spark) if self.spark else None),
        ) as services:
            yield replace(services, **changes)

    def land(
        self,
        runner: SparkRunner | None = None,
        window: Window | None = None,
        feed: Feed | None = None,
        **changes: Any,
    ) -> RunReport:
        with self.services(runner, feed, **changes) as services:
            return land_feed(services, window, Owner(f"run {uuid4()}"))

    def landed(self, runner: SparkRunner | None = None, **more: Any) -> RunReport:
        """A run in which no batch failed."""
        report = self.land(runner, **more)
        assert not report.errors, report.errors
        return report

    def reconciled(self, level: Level = Level.L2) -> ReconcileReport:
        with self.services() as services:
            return reconcile(services, level)

    def rows(self, generation: int = 1) -> list[Record]:
        """Every row that a reader of the plain tree sees, doubles included, sorted by place."""
        url = self.environ["WEBHDFS_URL"]
        found: list[Record] = []
        for directory in self._batches(f"{self.root}/{self.name}/gen={generation}"):
            found += rows_in(url, directory)
        return sorted(found, key=lambda each: (each.partition, each.offset))

    def times_by_hour(self, partition: int) -> dict[datetime, list[datetime]]:
        """The times of a partition's landed records by the hour of their directory, in order."""
        found: dict[datetime, list[datetime]] = {}
        for directory in self._batches(f"{self.root}/{self.name}/gen=1"):
            times = found.setdefault(BatchPath.parse(directory).hour, [])
            times += [
                datetime.fromtimestamp(each.timestamp_ms / 1000, UTC)
                for each in rows_in(self.environ["WEBHDFS_URL"], directory)
                if each.partition == partition
            ]
        return {hour: sorted(times) for hour, times in sorted(found.items()) if times}

    def files(self) -> list[str]:
        """Names of all published data files."""
        url = self.environ["WEBHDFS_URL"]
        return [
            name
            for generation in self._names(f"{self.root}/{self.name}")
            for directory in self._batches(f"{self.root}/{self.name}/{generation}")
            for name in names_in(url, directory)
            if name.endswith(".parquet")
        ]

    def produced(
        self, ranges: Mapping[int, tuple[int, int]], isolation: str = "read_committed"
    ) -> list[Record]:
        """The same offsets as librdkafka reads them."""
        servers = self.environ["KAFKA_BOOTSTRAP_SERVERS"]
        return records_in(servers, self.topic, ranges, isolation)

    def staged(self) -> list[str]:
        """Batches that have something left in staging."""
        names = self._names(f"{self.root}/_staging")
        return [each for each in names if not each.startswith(PROBE_PREFIX)]

    def _batches(self, generation: str) -> list[str]:
        return [
            f"{generation}/{day}/{hour}/{batch}"
            for day in self._names(generation)
            for hour in self._names(f"{generation}/{day}")
            for batch in self._names(f"{generation}/{day}/{hour}")
        ]

    def _names(self, path: str) -> list[str]:
        try:
            return names_in(self.environ["WEBHDFS_URL"], path)
        except requests.HTTPError as failure:
            if failure.response.status_code != 404:
                raise
            return []
