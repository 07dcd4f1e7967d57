"""What is asked of the ledger for monitoring: a few numbers for each feed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import FeedName
from tallystick.domain.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class NewestBatch:
    """What the newest published batch of a feed took; of its last attempt."""

    wait_seconds: float
    """From the plan until the attempt began."""
    land_seconds: float
    """Until what Spark had written was verified."""
    commit_seconds: float
    """Until it was committed."""
    publish_seconds: float
    """Until readers found it."""
    length_bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class FeedFigures:
    """One feed's counts."""

    feed: FeedName
    batches: Mapping[BatchState, int]
    rows: int
    """Of all committed batches, those that a repair has replaced included."""
    length_bytes: int
    findings: Mapping[tuple[str, Verdict], int]
    """Standing ones, by code and verdict; those that two people accept count as WAIVED."""
    newest: NewestBatch | None
    """None before the first published batch."""


class MetricsRecord(Protocol):
    """The part of the ledger that metrics come from; raises what `Ledger` raises."""

    def figures(self) -> Sequence[FeedFigures]:
        """Every feed that was ever planned, by name."""
        ...
