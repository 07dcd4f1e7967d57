"""What is asked of the ledger for reports: counts that the database adds up, and looks on record.

Nothing here reads a proof: the answers stay small however long the history is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import FeedName, GenerationId, Owner
from tallystick.domain.report.completeness import Look
from tallystick.domain.report.document import ReportDocument


@dataclass(frozen=True, slots=True)
class LookPlace:
    """One look at the broker, without what it showed."""

    snapshot_id: int
    looked_at: datetime
    """Never later than the ledger's clock was when the look began."""


@dataclass(frozen=True, slots=True)
class LookSums:
    """The offsets of all partitions that one look showed, added up."""

    snapshot_id: int
    topic_id: str
    recorded_at: datetime
    """By the ledger's clock, as commits are: what was committed before it can be told."""
    log_start: int
    last_stable: int
    high_watermark: int
    leaderless: int
    """How many partitions could not be asked."""


@dataclass(frozen=True, slots=True)
class ShownBounds:
    """The newest look, partition by partition."""

    looked_at: datetime
    topic_id: str
    log_start_offsets: Mapping[int, int]
    last_stable_offsets: Mapping[int, int]
    high_watermarks: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class LogTotals:
    """What is accounted for of one generation, whatever was folded or repaired since."""

    rows: int
    holes: Mapping[HoleClass, int]
    lost: int
    """Offsets recorded as lost."""
    missing_below: int
    """Offsets below the frontier that nothing covers: none, or the ledger is damaged."""


@dataclass(frozen=True, slots=True)
class WindowTotals:
    """What was landed for the windows that begin in one stretch of time."""

    batches: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True)
class AgeTotals:
    """Committed batches by the time since they were looked at, at one level."""

    level: str
    stretch: int | None
    """Index into the ages asked for, their number for older ones; None for never."""
    batches: int
    rows: int
    oldest_at: datetime | None


@dataclass(frozen=True, slots=True)
class LandedTotals:
    """One feed's history in a few thousand numbers, all of one instant."""

    logs: Mapping[GenerationId, LogTotals]
    windows: Mapping[int, WindowTotals]
    """By the number of edges at or before the window's start."""
    window_holes: Mapping[int, Mapping[HoleClass, int]]
    accounted: Mapping[int, int]
    """Offsets committed for the first time, or recorded as lost, by the number of instants at or
    before."""
    ages: Sequence[AgeTotals]
    directories_at: datetime | None
    """Since when each directory that was as committed was asked; None where there is none."""


class ReportsRecord(Protocol):
    """The part of the ledger that reports come from, and go into; raises what `Ledger` raises."""

    def doubt_look(self, snapshot_id: int, doubt: str) -> None:
        """Write down why nothing is proven to be complete up to a look, unless it stands there."""
        ...

    def look_places(self, feed: FeedName) -> Sequence[LookPlace]:
        """All looks, in the order in which they began."""
        ...

    def looks(self, snapshot_ids: Sequence[int]) -> Sequence[Look]:
        """These looks, in the order asked for."""
        ...

    def look_sums(self, snapshot_ids: Sequence[int]) -> Sequence[LookSums]:
        """These looks added up, in the order asked for."""
        ...

    def newest_bounds(self, feed: FeedName) -> ShownBounds | None:
        """All that the newest look showed; None before the first."""
        ...

    def landed_totals(
        self,
        feed: FeedName,
        *,
        edges: Sequence[datetime],
        looks_at: Sequence[datetime],
        instants: Sequence[datetime],
        ages_seconds: Sequence[int],
    ) -> LandedTotals:
        """The feed's history by windows that begin between `edges`, by commits between `instants`.

        A run without a window has landed what came before its look: it counts in the stretch that
        the first of `looks_at` ends which is not before that look. All of them ascend.
        """
        ...

    def newest_window_end(self, feed: FeedName, until: datetime) -> datetime | None:
        """The newest end of a planned window at or before the instant."""
        ...

    def store_report(self, document: ReportDocument, made_by: Owner | None = None) -> int:
        """Keep a report in one statement, with the run that has made it; its number."""
        ...

    def report_at(self, feed: FeedName, instant: datetime | None) -> ReportDocument | None:
        """The report that was kept last, of those taken at or before an instant; None without one.

        No asker's clock can make a report older or newer than another one.
        """
        ...
