"""The MetricsRecord port on PostgreSQL: counts that the database adds up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import FeedName
from tallystick.domain.verdicts import Verdict
from tallystick.ledger.connection import LedgerConnection
from tallystick.ports.metrics import FeedFigures, NewestBatch


class PostgresMetrics:
    """Fulfils `MetricsRecord`; see there for every promise."""

    _connection: LedgerConnection

    def figures(self) -> Sequence[FeedFigures]:
        """Every feed that was ever planned."""
        with self._connection.reading() as transaction:
            counts: defaultdict[str, list[Any]] = defaultdict(list)
            for row in transaction.rows("batch_counts"):
                counts[row.feed].append(row)
            findings: defaultdict[str, dict[tuple[str, Verdict], int]] = defaultdict(dict)
            for row in transaction.rows("code_counts"):
                findings[row.feed][row.code, Verdict(row.verdict)] = row.findings
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
