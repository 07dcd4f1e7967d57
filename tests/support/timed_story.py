"""A story whose looks come at instants that the test sets, by clocks that may be wrong."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tallystick.domain.identities import Owner
from tallystick.domain.logs.snapshot import BrokerSnapshot, EpochEnd
from tallystick.domain.report.completeness import Completeness
from tallystick.errors import BrokerUnavailable
from tallystick.settings.feed import Feed
from tallystick.workflows.landing.run import land_feed
from tallystick.workflows.reconciling.reconciliation import reconcile
from tallystick.workflows.reconciling.reporting import feed_completeness, report_of, store_report
from tallystick.workflows.services import Services
from tests.support.scripted_broker import NOW, ScriptedBroker
from tests.support.story import FEED, Story, a_feed

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
END = NOW.replace(minute=0, second=0, microsecond=0)
ONE = Owner("one")


@dataclass
class At:
    """The clock of all machines; the ledger's is ahead of it."""

    broker: Any

    def now(self) -> datetime:
        return self.broker.at  # type: ignore[no-any-return]

    def pause(self, seconds: float) -> None:
        return None


class Timed(ScriptedBroker):
    """Is asked at an instant that the test sets; its high watermarks may lag."""

    at = NOW
    lag = 0
    forgets = False
    """True: it knows no epochs."""
    unindexed: frozenset[int] = frozenset()
    """Partitions whose time index does not answer."""

    def snapshot(self, topic: str) -> BrokerSnapshot:
        seen = super().snapshot(topic)
        bounds = {
            number: replace(
                each,
                high_watermark=each.high_watermark - self.lag,
                last_stable_offset=each.last_stable_offset - self.lag,
                leader_epoch=None if self.forgets else each.leader_epoch,
            )
            for number, each in seen.partitions.items()
        }
        return replace(seen, taken_at=self.at, partitions=bounds)

    def epoch_ends(self, topic: str, epochs: Mapping[int, int]) -> Mapping[int, EpochEnd]:
        return {} if self.forgets else super().epoch_ends(topic, epochs)

    def offsets_at(
        self, topic: str, instant: datetime, partitions: Collection[int]
    ) -> Mapping[int, int | None]:
        if self.unindexed & {*partitions}:
            raise BrokerUnavailable("scripted", f"no leader for {self.unindexed}")
        return super().offsets_at(topic, instant, partitions)


@dataclass
class Place:
    story: Story
    broker: Timed

    def on(self, at: datetime = NOW, cron: str = "0 * * * *", **more: Any) -> Services:
        self.broker.at = at
        feed: Feed = a_feed(until=more.pop("until", "window_end"), **more.pop("plan", {}))
        settings = feed.model_dump()
        settings["schedule"]["cron"] = cron
        settings["source"].update(more.pop("source", {}))
        feed = Feed.model_validate(settings)
        return replace(self.story.services(), feed=feed, clock=At(self.broker), **more)

    def land(self, at: datetime = NOW, cron: str = "0 * * * *", **more: Any) -> None:
        assert not land_feed(self.on(at, cron, **more), None, ONE).errors

    def look(self, at: datetime = NOW, cron: str = "0 * * * *", **more: Any) -> Any:
        services = self.on(at, cron, **more)
        found = reconcile(services)
        store_report(services, report_of(services, found))
        return found

    @property
    def proven(self) -> Completeness:
        return feed_completeness(self.story.services().ledger, FEED).proven


def place_of(dsn: str, directory: Path, partitions: int = 1) -> Place:
    broker = Timed("orders", partitions=partitions)
    return Place(Story(dsn, directory, broker), broker)
