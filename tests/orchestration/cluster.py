"""A cluster of scripted topics, each a feed of one group, whose DAGs run in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tallystick.domain.identities import FeedName
from tallystick.errors import IngestionError
from tallystick.ledger.ledger import Ledger
from tallystick.settings.feed import Feed, FeedFile
from tallystick.workflows.services import Services
from tests.orchestration.stage import LONG
from tests.support.scripted_broker import Kind, ScriptedBroker
from tests.support.story import Story

EU, US, NEW = "events--orders_-eu", "events--orders_-us", "events--orders_-_new"
GROUP = """\
feed: events
source:
  topics: 'orders\\..*'
schedule:
  cron: "0 * * * *"
  start_date: 2026-11-01
target:
  root: /landing
complete_within: 30m
"""


@dataclass
class Cluster:
    """Its topics, and the trouble that a test writes."""

    dsn: str
    directory: Path
    folder: Path
    """Of feed files."""
    brokers: dict[str, ScriptedBroker] = field(default_factory=dict)
    failures: dict[str, list[IngestionError]] = field(default_factory=dict)
    """By topic: what opening its services raises, one for each try."""

    def create(self, topic: str) -> None:
        self.brokers[topic] = broker = ScriptedBroker(topic, partitions=1)
        broker.logs[0].append(Kind.RECORD, 10)

    def topics_of(self, group: FeedFile) -> list[str]:
        return [*self.brokers, "__consumer_offsets", "clicks"]

    @contextmanager
    def services_of(self, feed: Feed) -> Iterator[Services]:
        topic = feed.source.topic
        if self.failures.get(topic):
            raise self.failures[topic].pop(0)
        services = Story(self.dsn, self.directory, self.brokers[topic]).services(lease=LONG)
        try:
            yield replace(services, feed=feed)
        finally:
            services.ledger.close()

    @contextmanager
    def open_ledger(self) -> Iterator[Ledger]:
        ledger = Ledger(self.dsn)
        try:
            yield ledger
        finally:
            ledger.close()

    def rows(self, feed: str) -> int:
        """How many rows readers find of the feed."""
        import pyarrow.parquet as pq

        files = (self.directory / "landing" / feed).rglob("*.parquet")
        return sum(pq.read_table(each, partitioning=None).num_rows for each in files)

    def feeds(self) -> list[FeedName]:
        """Those on record."""
        with self.open_ledger() as ledger:
            return [each.feed for each in ledger.feed_heads(most_runs=0)]
