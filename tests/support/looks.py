"""Looks at the log that a story puts on record by hand."""

from __future__ import annotations

from collections.abc import Collection

from tallystick.domain.identities import FeedName
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.ledger.ledger import Ledger


def record_look(
    ledger: Ledger,
    feed: FeedName,
    snapshot: BrokerSnapshot,
    witnessed: Collection[int] = (),
    doubt: str | None = None,
) -> int:
    """A look without changes, under the planning lock; its number."""
    with ledger.planning(feed, snapshot.topic) as session:
        return session.record_look(snapshot, witnessed, doubt)
