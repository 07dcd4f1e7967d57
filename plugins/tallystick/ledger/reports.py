"""What reports are made of: sums by PostgreSQL, looks in arrays; and the reports themselves.

No proof is read: the answers stay small however long the history is.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, cast

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import BatchId, FeedName, GenerationId, Owner
from tallystick.domain.report.completeness import CompleteBy
from tallystick.domain.report.document import ReportDocument
from tallystick.domain.report.looks import CameLate, Look, LookPlace, doubt_of_clock
from tallystick.errors import LedgerRefused
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.look_columns import Shown
from tallystick.ledger.texts import compressed, decompressed, storable

# A producer's timestamp may lie in a year that no datetime can hold.
_LONGEST_SECONDS: Final = 100 * 366 * 86_400
# A look at 10,000 partitions takes some hundred kilobytes on its way here.
_LOOKS_AT_ONCE: Final = 20


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
    due_ends: Mapping[int, int]
    """Up to where each log is due (excluded): by windows that is not all that is readable."""
    is_compacted: bool
    retention_ms: int | None
    retention_bytes: int | None
    lost_at: datetime | None
    """When retention may take the first of what the newest report saw waiting; None if unknown."""


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


class Reports(Tables):
    """Where reports come from, and go to."""

    def doubt_look(self, snapshot_id: int, doubt: str) -> None:
        """Write down why nothing is proven to be complete up to a look, unless it stands there."""
        self._connection.change("doubt_look", snapshot_id=snapshot_id, doubt=storable(doubt))

    def look_places(self, feed: FeedName) -> Sequence[LookPlace]:
        """All looks, in the order in which they began."""
        rows = self._connection.rows("look_places", feed=feed)
        return [LookPlace(*row) for row in rows]

    def looks(self, snapshot_ids: Sequence[int]) -> Mapping[int, Look]:
        """These looks by their ids; one that was thinned out meanwhile is left out."""
        found: dict[int, Look] = {}
        with self._connection.reading() as transaction:
            for at in range(0, len(snapshot_ids), _LOOKS_AT_ONCE):
                some = list(snapshot_ids[at : at + _LOOKS_AT_ONCE])
                for row in transaction.rows("looks", snapshot_ids=some):
                    found[row.snapshot_id] = _look(row)
        return found

    def look_sums(self, snapshot_ids: Sequence[int]) -> Sequence[LookSums]:
        """These looks added up, in the order asked for."""
        rows = self._connection.rows("look_sums", snapshot_ids=list(snapshot_ids))
        found = {row.snapshot_id: LookSums(**row._asdict()) for row in rows}
        return [found[each] for each in snapshot_ids if each in found]

    def newest_bounds(self, feed: FeedName) -> ShownBounds | None:
        """All that the newest look showed; None before the first."""
        with self._connection.reading() as transaction:
            return newest_bounds(transaction, feed)

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
        with self._connection.reading() as transaction:
            directories = transaction.row("directories_at", feed=feed)
            oldest_at = directories.oldest_at if directories else None
            places = {"edges": list(edges), "looks_at": list(looks_at)}
            logs, window_holes = _log_totals(transaction, feed, places)
            return LandedTotals(
                logs=logs,
                windows={
                    row.stretch: WindowTotals(row.batches, row.record_count)
                    for row in transaction.rows("window_totals", feed=feed, **places)
                },
                window_holes=window_holes,
                accounted={
                    row.stretch: row.span
                    for row in transaction.rows(
                        "accounted_totals", feed=feed, instants=list(instants)
                    )
                },
                ages=[
                    AgeTotals(*row)
                    for row in transaction.rows(
                        "check_ages", feed=feed, ages_seconds=list(ages_seconds)
                    )
                ],
                directories_at=oldest_at,
            )

    def newest_window_end(self, feed: FeedName, until: datetime) -> datetime | None:
        """The newest end of a planned window at or before the instant."""
        found = self._connection.one("newest_window_end", feed=feed, until=until)
        return cast("datetime | None", found.window_until)

    def late_rows(self, feed: FeedName, before: datetime | None) -> CameLate | None:
        """What came late, of all or for windows before the instant; None where nothing did."""
        found = self._connection.one("late_rows", feed=feed, before=before)
        if found.late_count is None:
            return None
        return CameLate(before, found.late_count, found.oldest_at, BatchId(found.batch_id))

    def tell_complete(
        self, feed: FeedName, up_to: datetime | None, by: CompleteBy, told_at: datetime
    ) -> None:
        """Keep for pages and metrics what the feed is complete up to, unless a later one has told.

        `told_at` is this ledger's clock before anything of it was read.
        """
        told = {"up_to": up_to, "by": by.value, "told_at": told_at}
        self._connection.change("tell_complete", feed=feed, **told)

    def store_report(self, document: ReportDocument, made_by: Owner | None = None) -> int:
        """Keep a report in one statement, with the run that has made it; its number."""
        seconds = document.seconds_to_loss
        left = (
            None if seconds is None else timedelta(seconds=max(0, min(seconds, _LONGEST_SECONDS)))
        )
        with self._connection.writing() as transaction:
            stored = transaction.one(
                "store_report",
                feed=document.feed,
                taken_at=document.taken_at,
                verdict=document.verdict.value,
                complete_up_to=document.complete_up_to,
                lost_at=None if left is None else document.taken_at + left,
                deepest=document.deepest,
                silent=list(document.silent),
                made_by=made_by,
                document=compressed(storable(document.to_json())),
            )
        return int(stored.report_id)

    def report_at(self, feed: FeedName, instant: datetime | None) -> ReportDocument | None:
        """The report that was kept last, of those taken at or before an instant; None without one.

        No asker's clock can make a report older or newer than another one.
        """
        row = self._connection.row("newest_report", feed=feed, until=instant, number=None)
        if row is None:
            return None
        try:
            return ReportDocument.from_json(report_text(row))
        except ValueError as error:
            raise _unreadable(row, error) from error


def newest_bounds(transaction: Transaction, feed: FeedName) -> ShownBounds | None:
    """All that the newest look showed; None before the first."""
    row = transaction.row("newest_bounds", feed=feed)
    if row is None:
        return None
    shown = Shown.of(row.shown)
    return ShownBounds(
        looked_at=row.looked_at,
        topic_id=row.topic_id,
        log_start_offsets=shown.by_partition(shown.log_start_offsets),
        last_stable_offsets=shown.by_partition(shown.last_stable_offsets),
        high_watermarks=shown.by_partition(shown.high_watermarks),
        due_ends=shown.by_partition(shown.due_ends),
        is_compacted=row.is_compacted,
        retention_ms=row.retention_ms,
        retention_bytes=row.retention_bytes,
        lost_at=row.lost_at,
    )


def report_text(row: Any) -> str:
    """The very text of the report in a row; raises LedgerRefused when it can't be read."""
    try:
        return decompressed(row.document)
    except ValueError as error:
        raise _unreadable(row, error) from error


def report_value(row: Any) -> Mapping[str, Any]:
    """What that text says; raises as above."""
    try:
        found: Mapping[str, Any] = json.loads(decompressed(row.document))
    except ValueError as error:
        raise _unreadable(row, error) from error
    return found


def _unreadable(row: Any, error: ValueError) -> LedgerRefused:
    return LedgerRefused("report", f"report {row.report_id} can't be read: {error}")


def _look(row: Any) -> Look:
    shown = Shown.of(row.shown)
    return Look(
        looked_at=row.looked_at,
        topic_id=row.topic_id,
        partitions=array("q", shown.partitions),
        high_watermarks=array("q", shown.high_watermarks),
        leaderless=frozenset(shown.leaderless),
        doubt=row.doubt or doubt_of_clock(row.taken_at, row.recorded_at),
        border_at=row.border_at,
        borders=shown.borders,
    )


def _log_totals(
    transaction: Transaction, feed: FeedName, places: Mapping[str, object]
) -> tuple[dict[GenerationId, LogTotals], dict[int, dict[HoleClass, int]]]:
    """By generation, and its holes once more by window."""
    of_logs: dict[GenerationId, dict[HoleClass, int]] = {}
    of_windows: dict[int, dict[HoleClass, int]] = {}
    for row in transaction.rows("hole_totals", feed=feed, **places):
        if row.generation_id is not None:
            counts = of_logs.setdefault(GenerationId(row.generation_id), {})
        else:
            counts = of_windows.setdefault(row.stretch, {})
        counts[HoleClass(row.hole_class)] = row.hole_count
    logs = {
        GenerationId(row.generation_id): LogTotals(
            rows=row.record_count,
            holes=of_logs.get(GenerationId(row.generation_id), {}),
            lost=row.lost,
            missing_below=row.missing_below,
        )
        for row in transaction.rows("log_totals", feed=feed)
    }
    return logs, of_windows
