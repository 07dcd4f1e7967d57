"""What was wrong with a feed, and is no more: verdicts, closed findings, waivers; newest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from tallystick.domain.identities import FeedName
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.ledger.connection import Tables
from tallystick.ledger.findings import findings_of
from tallystick.ledger.overview import ReportHead, report_head


@dataclass(frozen=True, slots=True)
class WaiverStep:
    """Something that one person did about the waiver of a trouble."""

    taken_at: datetime
    step: str
    """`asked`, `approved`, `withdrawn`, `replaced` or `ended`."""
    taken_by: str
    reason: str
    expires_at: datetime
    finding_ids: Sequence[int]
    """Ascending."""


@dataclass(frozen=True, slots=True)
class RecentRun:
    """One run in numbers."""

    planned_at: datetime
    lag: int | None
    """Offsets that waited at its look; None where it can't tell."""
    rows: int
    """That it landed."""
    seconds: int | None
    """From its plan until the last of that was published; None where nothing was."""


class History(Tables):
    """The feed's past, in pages: each list has what was up to an instant, which counts."""

    def verdict_changes(
        self, feed: FeedName, until: datetime | None, *, most: int
    ) -> Sequence[ReportHead]:
        """The reports with which another verdict began."""
        rows = self._connection.rows("verdict_changes", feed=feed, until=until, most=most)
        return [report_head(row) for row in rows]

    def closed_findings(
        self, feed: FeedName, until: datetime | None, *, most: int
    ) -> Sequence[StoredFinding]:
        """The findings that were closed."""
        with self._connection.reading() as transaction:
            rows = transaction.rows("closed_findings", feed=feed, until=until, most=most)
            numbers = [row.finding_id for row in rows]
            found = {each.finding_id: each for each in findings_of(transaction, numbers=numbers)}
        return [found[each] for each in numbers]

    def recent_runs(
        self, feeds: Sequence[FeedName], *, most: int
    ) -> Mapping[str, Sequence[RecentRun]]:
        """By feed, so many of its newest runs, oldest first."""
        found: dict[str, list[RecentRun]] = {}
        for row in self._connection.rows("recent_runs", feeds=list(feeds), most=most):
            told = RecentRun(row.planned_at, row.lag, row.record_count, row.seconds)
            found.setdefault(row.feed, []).append(told)
        return found

    def waiver_steps(
        self, feed: FeedName, until: datetime | None, *, most: int
    ) -> Sequence[WaiverStep]:
        """Who has asked for waivers, approved, withdrawn or ended them."""
        rows = self._connection.rows("waiver_steps", feed=feed, until=until, most=most)
        return [WaiverStep(**row._asdict()) for row in rows]
