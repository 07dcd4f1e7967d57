"""Tells those who wait for proof if a feed is complete up to an instant, in a few words.

The ledger alone answers. What "complete" means is decided in domain/report/completeness.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from tallystick.domain.identities import FeedName
from tallystick.ports.ledger import Ledger

_MOST_TOLD: Final = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """The ledger proves this of a feed, beside the instant that was asked for."""

    is_proven: bool
    complete_up_to: datetime | None
    held_back_by: Sequence[str]
    """In sentences, the furthest behind first; five at most."""
    landed: str
    """What that means: with all that two people have accepted."""
    storage_heard_at: datetime | None
    """When a reconcile heard storage last."""

    def __str__(self) -> str:
        up_to = self.complete_up_to
        if up_to is None:
            return " ".join(["not known to be complete.", *self.held_back_by])
        heard = in_words(self.storage_heard_at) if self.storage_heard_at else "never"
        reach = f"complete up to {in_words(up_to)}: {self.landed}; storage was heard last: {heard}."
        return " ".join([reach, *self.held_back_by])


def ask(ledger: Ledger, feed: str, instant: datetime) -> Answer:
    """Says if all that was readable before the instant is proven; raises what the ledger raises."""
    # The workflow's libraries take a while, which a DAG file must not wait for.
    from tallystick.domain.report.completeness import Proof
    from tallystick.domain.report.finding_part import stored_part
    from tallystick.domain.report.held_back import held_back_by
    from tallystick.report.wording import landed_text
    from tallystick.workflows.reconciling.reporting import feed_completeness

    found = feed_completeness(ledger, FeedName(feed))
    is_proven = found.proven.proof_of(instant) is Proof.PROVEN
    heads = () if is_proven else ledger.feed_heads(FeedName(feed), most_runs=0)
    topic = heads[0].topic if heads else feed
    held = () if is_proven else held_back_by(topic, found.proven, instant, found.numbers)
    return Answer(
        is_proven,
        found.proven.up_to,
        tuple(held[:_MOST_TOLD]),
        landed_text([stored_part(each) for each in found.accepted]),
        found.storage_heard_at,
    )


def in_words(instant: datetime) -> str:
    """The instant in UTC, to the second.

    >>> in_words(datetime(2026, 11, 1, 6, tzinfo=UTC))
    '2026-11-01T06:00:00Z'
    """
    return f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"
