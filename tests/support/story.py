"""A feed with everything behind its ports: real ledger, real files, a scripted broker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_hex
from typing import Any

import pyarrow.parquet as pq

from tallystick.domain.identities import FeedName, Owner
from tallystick.domain.verdicts import FindingState
from tallystick.ledger.ledger import Ledger
from tallystick.settings.feed import Feed
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.services import Services
from tests.support.effects import Countdown, Counted
from tests.support.local_directory import LocalFileStore
from tests.support.scripted_broker import NOW, Kind, ScriptedBroker, ScriptedReader, ScriptedSpark

FEED = FeedName("orders")


class FixedClock:
    """Stands still, and never really waits."""

    def now(self) -> datetime:
        return NOW

    def pause(self, seconds: float) -> None:
        return None


def a_feed(**plan: Any) -> Feed:
    return Feed.model_validate(
        {
            "feed": FEED,
            "source": {"topic": "orders"},
            "schedule": {"cron": "0 * * * *", "start_date": datetime(2026, 11, 1, tzinfo=UTC)},
            "plan": plan,
            "target": {"root": "/landing"},
        }
    )


def a_landed_story(
    dsn: str, directory: Path, *counts: int, broker: ScriptedBroker | None = None
) -> Story:
    """Two partitions with so many more records each, landed in one batch for each count."""
    story = Story(dsn, directory, broker or ScriptedBroker("orders"))
    for count in counts:
        for log in story.broker.logs.values():
            log.append(Kind.RECORD, count)
        land_feed(story.services(), None, Owner("before"))
    return story


@dataclass
class Story:
    """One ledger, one directory, one broker; services for as many processes as a test wants."""

    dsn: str
    directory: Path
    broker: ScriptedBroker

    def services(
        self, countdown: Countdown | None = None, *, lease: timedelta = timedelta(0), **plan: Any
    ) -> Services:
        """The services of one process. With no lease, anybody may adopt its batches at once."""
        countdown = countdown or Countdown()
        store: Any = Counted(LocalFileStore(self.directory), countdown)
        return Services(
            feed=a_feed(**plan),
            ledger=Counted(Ledger(self.dsn), countdown),  # type: ignore[arg-type]
            broker=self.broker,
            store=store,
            spark=Counted(ScriptedSpark(self.broker, store), countdown),
            clock=FixedClock(),
            new_id=lambda: token_hex(8),
            second_ledger=lambda: Ledger(self.dsn),
            kafka_options={"kafka.bootstrap.servers": "scripted"},
            second_reader=ScriptedReader(self.broker),
            lease=lease,
        )

    def named(self) -> list[int]:
        """The numbers of all open findings: who repairs by them has looked for what is missing."""
        standing = Ledger(self.dsn).findings(FEED)
        return [each.finding_id for each in standing if each.state is FindingState.OPEN]

    def published_offsets(self) -> dict[int, list[int]]:
        """What a reader of the plain directory tree sees: every offset, doubles included."""
        found: dict[int, list[int]] = {}
        for file in sorted((self.directory / "landing" / FEED).rglob("*.parquet")):
            rows = pq.read_table(file, columns=["partition", "offset"], partitioning=None)
            for partition, offset in zip(
                rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True
            ):
                found.setdefault(partition, []).append(offset)
        return {partition: sorted(offsets) for partition, offsets in sorted(found.items())}

    def staged(self) -> list[str]:
        """Everything that is left below _staging."""
        staging = self.directory / "landing" / "_staging"
        return sorted(str(each.relative_to(staging)) for each in staging.rglob("*"))
