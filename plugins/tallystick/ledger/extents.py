"""How much findings are about: from the batches and files that they name, and the newest look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

from tallystick.domain.batches.landed import FileSlice
from tallystick.domain.identities import FeedName
from tallystick.domain.report.extent import Extent
from tallystick.domain.report.finding_part import FindingPart, finding_part
from tallystick.domain.rules.a8_committed_file_missing import LostRows
from tallystick.domain.rules.evidence import batch_in, file_in
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.ledger.batches import landed_file
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.look_columns import Shown
from tallystick.ledger.reports import ShownBounds, newest_bounds

_About = tuple[str, str | None]
"""A batch, and the name of its file; None for all its files."""

_MOST_BATCHES: Final = 50
"""Of so many it is asked how long Kafka keeps what they hold: a look for each is read whole."""


class Extents(Tables):
    """Findings as people are shown them."""

    def told_findings(self, found: Iterable[StoredFinding]) -> list[FindingPart]:
        """The findings as documents show them, each with its extent."""
        findings = list(found)
        extents = self.extents(findings)
        return [finding_part(each.finding, each, extents.get(each.finding_id)) for each in findings]

    def extents(self, found: Iterable[StoredFinding]) -> Mapping[int, Extent]:
        """By number, how much each finding is about; none for what no log and no batch tells."""
        extents: dict[int, Extent] = {}
        in_order = sorted(found, key=lambda each: each.finding.feed)
        with self._connection.reading() as transaction:
            for feed, of_feed in groupby(in_order, lambda each: FeedName(each.finding.feed)):
                findings = list(of_feed)
                known = _read(transaction, feed, [each.finding for each in findings])
                for each in findings:
                    if extent := known.extent_of(each.finding):
                        extents[each.finding_id] = extent
        return extents


@dataclass(frozen=True, slots=True)
class _Before:
    """The look before that of a batch's plan."""

    is_by_time: bool
    """True for a plan by record time: its window says when its records are of."""
    looked_at: datetime | None
    topic_id: str | None
    ends: Mapping[int, int]


@dataclass(slots=True)
class _Landed:
    """A batch that a finding names."""

    row: Any
    before: _Before | None = None
    slices: defaultdict[int, list[FileSlice]] = field(default_factory=lambda: defaultdict(list))

    @property
    def is_by_time(self) -> bool:
        """True where its window is the time of its records."""
        return self.before is not None and self.before.is_by_time

    def rows_of(self, partition: int, first: int, end: int) -> int | None:
        """Rows of these offsets; None where a file begins or ends elsewhere."""
        held = [each for each in self.slices[partition] if each.meets(partition, first, end)]
        is_whole = all(first <= each.first_offset and each.last_offset < end for each in held)
        return sum(each.record_count for each in held) if held and is_whole else None

    def none_is_older_than(self, log: Any, first: int) -> datetime | None:
        """Before when no record from this offset on can have come; None where nobody knows."""
        before = self.before
        if before is None or before.is_by_time:
            return self.row.window_from if before else None
        is_that_log = log is not None and before.topic_id == log.topic_id
        end = before.ends.get(log.partition) if is_that_log else None
        return before.looked_at if end is not None and end <= first else None


@dataclass(frozen=True, slots=True)
class _Known:
    """What is read once for all findings of a feed."""

    shown: ShownBounds | None
    logs: Mapping[tuple[int, int], Any]
    landed: Mapping[_About, _Landed]

    def extent_of(self, found: Finding) -> Extent | None:
        about = _about(found)
        landed = self.landed.get(about) if about else None
        if found.partition is None or found.from_offset is None or found.until_offset is None:
            return _of_batch(landed) if landed else None
        first, end = found.from_offset, found.until_offset
        log = self.logs.get((found.partition, found.generation or 0))
        kept_until = None
        if landed:
            kept_until = self._kept_until(landed.none_is_older_than(log, first))
        elif self.shown and log and first >= log.frontier:
            kept_until = self.shown.lost_at
        return Extent(
            offsets=end - first,
            rows=landed.rows_of(found.partition, first, end) if landed else None,
            since=_since(landed),
            until=landed.row.window_until if landed else None,
            is_by_time=landed is not None and landed.is_by_time,
            kept=self._kept(log, found.partition, first, end),
            kept_until=kept_until,
            looked_at=self.shown.looked_at if self.shown else None,
        )

    def _kept(self, log: Any, partition: int, first: int, end: int) -> int | None:
        """How many of the offsets are between the log's start and its end."""
        shown = self.shown
        if shown is None or log is None:
            return None
        if shown.topic_id != log.topic_id:
            return 0
        if shown.is_compacted or partition not in shown.log_start_offsets:
            return None  # what lies between the ends of a log may have been compacted away
        low, high = shown.log_start_offsets[partition], shown.high_watermarks[partition]
        return max(0, min(end, high) - max(first, low))

    def _kept_until(self, since: datetime | None) -> datetime | None:
        shown = self.shown
        if since is None or shown is None or shown.retention_ms is None:
            return None
        if shown.is_compacted or shown.retention_bytes is not None:
            return None  # compaction and size keep to no time
        try:
            return since + timedelta(milliseconds=shown.retention_ms)
        except OverflowError:  # a number that stands for "for ever"
            return None


def _about(found: Finding) -> _About | None:
    lost, file = LostRows.of(found), file_in(found.evidence)
    batch_id = lost.repair if lost else batch_in(found.evidence)
    return None if batch_id is None else (batch_id, file.name if file else None)


def _since(landed: _Landed | None) -> datetime | None:
    if landed is None:
        return None
    since: datetime = landed.row.window_from or landed.row.label
    return since


def _of_batch(landed: _Landed) -> Extent:
    return Extent(
        offsets=landed.row.span,
        rows=landed.row.record_count,
        since=_since(landed),
        until=landed.row.window_until,
        is_by_time=landed.is_by_time,
    )


def _shown(row: Any) -> Shown | None:
    return Shown.of(row.shown) if row.shown else None


def _read(transaction: Transaction, feed: FeedName, findings: Sequence[Finding]) -> _Known:
    logs = {(each.partition, each.generation or 0) for each in findings} - {(None, 0)}
    landed: dict[_About, _Landed] = {}
    about = {each: None for each in map(_about, findings) if each}
    rows = transaction.rows(
        "files_of_findings",
        batch_ids=[batch_id for batch_id, _ in about],
        names=[name for _, name in about],
    )
    for row in rows:
        batch = landed.setdefault((row.batch_id, row.asked_name), _Landed(row))
        for each in landed_file(row).slices if row.name else ():
            batch.slices[each.partition].append(each)
    batch_ids = list({batch_id for batch_id, _ in landed})[:_MOST_BATCHES]
    before = {
        row.batch_id: _Before(
            row.is_by_time,
            row.looked_at,
            row.topic_id,
            shown.by_partition(shown.high_watermarks) if (shown := _shown(row)) else {},
        )
        for row in transaction.rows("looks_before", batch_ids=batch_ids)
    }
    for (batch_id, _), batch in landed.items():
        batch.before = before.get(batch_id)
    found = transaction.rows(
        "logs_of_findings",
        feed=feed,
        partitions=[partition for partition, _ in logs],
        ordinals=[ordinal for _, ordinal in logs],
    )
    return _Known(
        shown=newest_bounds(transaction, feed),
        logs={(each.partition, each.ordinal): each for each in found},
        landed=landed,
    )
