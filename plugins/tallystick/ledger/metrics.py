"""A few numbers for each feed, which the database adds up for monitoring."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import FeedName
from tallystick.domain.verdicts import Verdict
from tallystick.ledger.connection import Tables


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


class Metrics(Tables):
    """Where metrics come from."""

    def figures(self) -> Sequence[FeedFigures]:
        """Every feed that was ever planned, by name."""
        with self._connection.reading() as transaction:
            counts: defaultdict[str, list[Any]] = defaultdict(list)
            for row in transaction.rows("batch_counts"):
                counts[row.feed].append(row)
            findings: defaultdict[str, dict[tuple[str, Verdict], int]] = defaultdict(dict)
            for row in transaction.rows("standing_counts", feed=None):
                counted, key = findings[row.feed], (row.code, Verdict(row.verdict))
                counted[key] = counted.get(key, 0) + row.findings
            newest = {row.feed: _newest(row) for row in transaction.rows("newest_batches")}
        return [
            FeedFigures(
                feed=FeedName(feed),
                batches={BatchState(each.state): each.batches for each in rows if each.state},
                rows=sum(each.record_count for each in rows),
                length_bytes=sum(each.byte_count for each in rows),
                findings=findings[feed],
                newest=newest.get(feed),
            )
            for feed, rows in counts.items()
        ]


def _newest(row: Any) -> NewestBatch:
    return NewestBatch(
        wait_seconds=_between(row.planned_at, row.started_at),
        land_seconds=_between(row.started_at, row.verified_at),
        commit_seconds=_between(row.verified_at, row.committed_at),
        publish_seconds=_between(row.committed_at, row.published_at),
        length_bytes=row.byte_count,
        rows=row.record_count,
    )


def _between(earlier: datetime, later: datetime) -> float:
    return max(0.0, (later - earlier).total_seconds())
