"""Tells those who wait for proof if a feed is complete up to an instant, in a few words.

The ledger alone answers. What "complete" means is decided in domain/report/completeness.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from tallystick.domain.identities import FeedName
from tallystick.report.wording import instant_text, landed_text

if TYPE_CHECKING:
    from tallystick.ledger.ledger import Ledger

_MOST_TOLD: Final = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """The ledger proves this of a feed, beside the instant that was asked for."""

    is_proven: bool
    complete_up_to: datetime | None
    words: str
    """What that means, with all that two people have accepted; and what holds it back."""

    def __str__(self) -> str:
        return self.words


def ask(ledger: Ledger, feed: str, instant: datetime) -> Answer:
    """Says if all that was readable before the instant is proven; raises what the ledger raises."""
    # The workflow's libraries take a while, which a DAG file must not wait for.
    from tallystick.domain.report.completeness import Proof
    from tallystick.domain.report.finding_part import stored_part
    from tallystick.domain.report.held_back import held_back_by
    from tallystick.workflows.reconciling.reporting import feed_completeness

    found = feed_completeness(ledger, FeedName(feed))
    up_to, is_proven = found.proven.up_to, found.proven.proof_of(instant) is Proof.PROVEN
    words = ["not known to be complete."]
    if up_to is not None:
        landed = landed_text([stored_part(each) for each in found.accepted])
        heard = instant_text(found.storage_heard_at) if found.storage_heard_at else "never"
        reach = f"complete up to {instant_text(up_to)}: {landed}"
        words = [f"{reach}; storage was heard last: {heard}."]
    if not is_proven:
        heads = ledger.feed_heads(FeedName(feed), most_runs=0)
        topic = heads[0].topic if heads else feed
        words += held_back_by(topic, found.proven, instant, found.numbers)[:_MOST_TOLD]
    return Answer(is_proven, up_to, " ".join(words))
