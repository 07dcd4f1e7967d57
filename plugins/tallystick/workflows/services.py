"""What a workflow works with: the ledger, one adapter behind each port, and a source of ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from tallystick.domain.batches.states import Isolation
from tallystick.domain.identities import FeedName
from tallystick.domain.planning.due import MOST_BATCHES
from tallystick.ledger.ledger import Ledger
from tallystick.ports.broker import BrokerView, FrontierGroup, SecondReader
from tallystick.ports.file_store import FileStore
from tallystick.ports.progress import Told, harmless, unheard
from tallystick.ports.spark_runner import SparkRunner
from tallystick.settings.feed import Feed

# Correctness never rests on it: a lease only says when another run may take a batch over. Twice
# this is the longest that a killed run's batches wait.
LEASE: Final = timedelta(seconds=60)


class Clock(Protocol):
    """The wall clock, aware and in UTC: the only way a workflow learns what time it is.

    Order and correctness never rest on it.
    """

    def now(self) -> datetime:
        """The instant, with a UTC offset of zero."""
        ...

    def pause(self, seconds: float) -> None:
        """Wait this long; tests return at once."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """One feed's adapters."""

    feed: Feed
    ledger: Ledger
    broker: BrokerView
    store: FileStore
    spark: SparkRunner
    clock: Clock
    new_id: Callable[[], str]
    """16 to 32 hexadecimal characters that were never given out before."""
    second_ledger: Callable[[], Ledger]
    """A ledger of its own for the heartbeat, which runs beside everything else."""
    kafka_options: Mapping[str, str]
    """What Spark's Kafka source needs to reach the cluster; never a secret."""
    second_reader: SecondReader | None = None
    """Another Kafka client; None where the feed wants none."""
    frontier_group: FrontierGroup | None = None
    """Who shows tools that watch lag what is landed; None where the feed names no group."""
    lease: timedelta = LEASE
    """How long an attempt holds its batch without a sign of life."""
    declared: Callable[[], Collection[str] | None] = lambda: None
    """The names of all feeds that have a file; None where nobody knows."""
    most_batches: int = MOST_BATCHES
    """How many batches whoever carries out a plan can carry out in one run."""
    progress: Told = unheard
    """Who hears how far the work has come."""

    def heard_by(self, listener: Told) -> Services:
        """The same, with somebody who hears how far the work has come; trouble there is no harm."""
        return replace(self, progress=harmless(listener, what="Progress"))

    def part(self, part: str) -> Services:
        """The same for a part of the work, which is named in what is told of it."""
        return replace(self, progress=lambda told: self.progress(replace(told, part=part)))

    def present(self) -> datetime:
        """Now, and never later than by the ledger's clock: ours may be days ahead.

        Not inside a planning session, which has the ledger's connection.
        """
        return min(self.clock.now(), self.ledger.clock())

    @property
    def feed_name(self) -> FeedName:
        """The feed's name."""
        return FeedName(self.feed.name)

    @property
    def isolation(self) -> Isolation:
        """What the feed may see, at the broker and in Spark."""
        return Isolation(self.feed.source.isolation)

    @property
    def servers(self) -> str:
        """The cluster's bootstrap servers, for a sentence."""
        return self.kafka_options.get("kafka.bootstrap.servers", "the connection's servers")

    @property
    def topic(self) -> str:
        """The feed's topic."""
        return self.feed.source.topic

    @property
    def root(self) -> str:
        """The directory below which everything of the feed lies."""
        return self.feed.target.root
