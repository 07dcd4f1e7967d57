"""Compares a feed's file with what the ledger has of the feed, before anything rests on either."""

from __future__ import annotations

import logging
from collections.abc import Collection

from tallystick.domain.batches.states import Isolation
from tallystick.domain.identities import FeedName
from tallystick.domain.planning.feed_edits import FeedEdit, FeedInFile, feed_edits
from tallystick.errors import ConfigurationError
from tallystick.ledger.ledger import Ledger
from tallystick.settings.feed import Feed
from tallystick.workflows.place import at
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


def edits_of(ledger: Ledger, feed: Feed, declared: Collection[str] | None) -> list[FeedEdit]:
    """What the feed's file says otherwise than the ledger; see `feed_edits`."""
    name = FeedName(feed.name)
    return feed_edits(name, in_file(feed), ledger.on_record(name, feed.source.topic), declared)


def in_file(feed: Feed) -> FeedInFile:
    """What the file says that is compared with the ledger, or shown by it."""
    within = feed.complete_within
    return FeedInFile(
        topic=feed.source.topic,
        root=feed.target.root,
        isolation=Isolation(feed.source.isolation),
        until=feed.plan.until,
        cron=feed.schedule.cron,
        timezone=feed.schedule.timezone,
        complete_within_seconds=within.total_seconds() if within else None,
        labels=dict(feed.labels),
    )


def told_edits(services: Services, step: str) -> list[str]:
    """What differs, as sentences, logged too; raises ConfigurationError for what must not.

    `step` is the one that rests on it.
    """
    with at(services, step):
        edits = edits_of(services.ledger, services.feed, services.declared())
        for each in edits:
            if each.is_refused:
                raise ConfigurationError(
                    ".".join(each.key), each.value, each.words, where=f"feed {services.feed_name}"
                )
            log.warning("%s", each.words)
    return [each.words for each in edits]
