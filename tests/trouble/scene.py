"""One feed in trouble: what it has produced, how its run fails, and how the next one recovers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import count
from typing import Any

import psycopg
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from tallystick.domain.identities import Owner
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.errors import ApplicationFailed, IngestionError
from tallystick.ports.spark_runner import LandingOrder
from tallystick.settings.feed import Feed
from tallystick.sources.broker_view import KafkaBrokerView
from tallystick.spark.causes import failure_of
from tallystick.storage.name_nodes import NameNodes
from tallystick.storage.web_hdfs import WebHdfsFileStore
from tallystick.workflows.landing.run import RunReport, land_feed
from tallystick.workflows.services import Services
from tests.support.busy import BUSY_SECONDS
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import wait_until
from tests.support.whole_way import SessionRunner, Way
from tests.trouble.place import Place

# A killed run's batches are free after it.
LEASE = timedelta(seconds=2)
AWAY_SECONDS = 4.0
"""Patience with Kafka where it is taken away: a test waits for the end of it."""
HDFS_RETRY_SECONDS = 1.0
"""HDFS is asked again for as long; whoever is there may take his time to answer."""
_OWNERS = count(1)


@dataclass
class Runner(SessionRunner):
    """As spark-submit does it: whatever Spark raises is an application that failed."""

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        try:
            super().run(order, started=started)
        except (PySparkException, Py4JError) as error:
            raise ApplicationFailed(order.batch_id, order.attempt_id, failure_of(error)) from error


@dataclass
class Scene(Way):
    """A feed whose services can be taken away."""

    place: Place = field(kw_only=True)
    count: int = 0
    """Records that were produced to partition 0."""
    patience_seconds: float = BUSY_SECONDS
    """With Kafka."""
    retry_seconds: float = HDFS_RETRY_SECONDS

    @contextmanager
    def services(
        self, runner: SessionRunner | None = None, feed: Feed | None = None, **changes: Any
    ) -> Iterator[Services]:
        """The real ones, less patient. A change may be a function of the service it replaces."""
        servers = {"bootstrap.servers": self.environ["KAFKA_BOOTSTRAP_SERVERS"]}
        name_nodes = NameNodes(
            [self.environ["WEBHDFS_URL"]],
            answer_seconds=BUSY_SECONDS,
            retry_seconds=self.retry_seconds,
        )
        store = WebHdfsFileStore(name_nodes, self.environ["HDFS_URL"])
        with (
            super().services(runner or Runner(self.spark), feed) as services,
            KafkaBrokerView(
                servers, now=services.clock.now, patience_seconds=self.patience_seconds
            ) as broker,
            closing(store),
        ):
            services = replace(services, broker=broker, store=store, lease=LEASE)
            for name, change in changes.items():
                new = change(getattr(services, name)) if callable(change) else change
                services = replace(services, **{name: new})
            yield services

    def land(
        self,
        runner: SessionRunner | None = None,
        window: Window | None = None,
        feed: Feed | None = None,
        **changes: Any,
    ) -> RunReport:
        """One run, with an owner of its own as every process has."""
        with self.services(runner, feed, **changes) as services:
            return land_feed(services, window, Owner(f"run {next(_OWNERS)}"))

    def fails(self, runner: SessionRunner | None = None, **more: Any) -> IngestionError:
        """The first error of a run that can't do all it should."""
        try:
            report = self.land(runner, **more)
        except IngestionError as error:
            return error
        assert report.errors, "the run noticed nothing"
        return report.errors[0]

    def produce(self, count: int) -> None:
        """More records, behind the others."""
        servers = self.place.bootstrap_servers
        produce(servers, self.topic, messages(count, of=f"from {self.count} "))
        self.count += count

    def let_leases_run_out(self) -> None:
        """As if the longest lease of a dead run were over."""
        with psycopg.connect(self.environ["LEDGER_DSN"]) as ledger:
            ledger.execute("UPDATE batch SET lease_until = now() WHERE holder IS NOT NULL")

    def recovers(self, **more: Any) -> None:
        """The next runs land what is left, once a dead one's lease is over: each offset once."""
        wanted = self.produced({0: (0, self.count)})
        assert len(wanted) == self.count

        def is_landed() -> bool:
            self.landed(**more)
            return len(self.rows()) >= len(wanted) and not self.staged()

        with self._patient():
            wait_until(is_landed, "everything is landed")
            assert self.rows() == wanted
            report = self.reconciled()
        assert (report.verdict, report.findings) == (Verdict.PROVEN_OK, ())

    @contextmanager
    def _patient(self) -> Iterator[None]:
        """Every service is there again, and may be slow."""
        before = self.patience_seconds, self.retry_seconds
        self.patience_seconds = self.retry_seconds = BUSY_SECONDS
        try:
            yield
        finally:
            self.patience_seconds, self.retry_seconds = before

    def tells(self, error: IngestionError, *words: str) -> None:
        """The error names the feed, all these words, and what to do; by no word of a stack."""
        text = str(error)
        for each in (f"feed {self.name}", *words, error.next_step):
            assert each in text, (each, text)
        assert "Traceback" not in text
        assert "\tat " not in text


NewScene = Callable[..., Scene]


@dataclass
class Before:
    """Has something happen just before a verb of a port is called."""

    verb: str
    act: Callable[[], object]

    def __call__(self, port: Any) -> Any:
        return _Struck(port, self)


class _Struck:
    def __init__(self, port: Any, before: Before) -> None:
        self._port, self._before = port, before

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if name != self._before.verb:
            return found

        def struck(*args: Any, **kwargs: Any) -> Any:
            self._before.act()
            return found(*args, **kwargs)

        return struck
