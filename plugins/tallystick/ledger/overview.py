"""What people are shown who look at many feeds: heads, counts, pages of a list.

No proof is read, a report where one is named, and every answer but a report and the lists by
partition has a bounded size, however long the history is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tallystick.domain.batches.states import BatchState, HoleClass
from tallystick.domain.finding_codes import Level
from tallystick.domain.identities import BatchId, FeedName, GenerationId, Owner, PlanId
from tallystick.domain.plain_json import from_plain
from tallystick.domain.planning.feed_edits import FeedInFile
from tallystick.domain.report.completeness import CompleteBy
from tallystick.domain.report.standing import Heard, LastHeard, verdict_now
from tallystick.domain.rules.findings import FAILING_VERDICTS
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.ledger.batches import Replaced, replaced_among
from tallystick.ledger.connection import Tables, Transaction
from tallystick.ledger.findings import read_finding
from tallystick.ledger.look_columns import Shown
from tallystick.ledger.reports import LogTotals, report_text, report_value
from tallystick.ledger.rows import window_in


@dataclass(frozen=True, slots=True)
class ReportHead:
    """A stored report in a few words."""

    number: int
    taken_at: datetime
    verdict: Verdict
    complete_up_to: datetime | None
    made_by: Owner | None
    """The run that has made it; None for one that was made by hand."""


@dataclass(frozen=True, slots=True)
class RunHead:
    """One plan of a feed, and what became of its batches."""

    plan_id: PlanId
    owner: Owner
    window: Window | None
    planned_at: datetime
    batches: int
    """Planned and adopted."""
    published: int
    abandoned: int
    rows: int
    """Of those that are committed."""


@dataclass(frozen=True, slots=True)
class CompleteHead:
    """What a feed is complete up to, as the end of a run or a report said it last."""

    up_to: datetime | None
    by: CompleteBy
    told_at: datetime


@dataclass(frozen=True, slots=True)
class FeedHead:
    """One feed by its newest rows."""

    feed: FeedName
    topic: str
    described: FeedInFile | None
    """By the newest plan; None before one has told it."""
    partitions: int
    report: ReportHead | None
    looked_at: datetime | None
    """The newest look at the broker."""
    border_at: datetime | None
    """The end of the newest window, as that look asked for it; None for a feed without windows."""
    complete: CompleteHead | None
    """None before the first run has ended."""
    lag: int | None
    """Offsets below that look's high watermarks that are not landed; None where it can't tell."""
    is_blank: bool
    """True while nothing of a log is landed, and that look shows what is due, or not the log."""
    lost_at: datetime | None
    """When retention may take the first of what the newest report saw waiting; None if unknown."""
    heard: Heard
    standing: Mapping[Verdict, int]
    """Findings that stand; those that two people accept count as WAIVED."""
    open_since: datetime | None
    """When the first of those was seen that nobody accepts; None without one."""
    failing_at: datetime | None
    """When the newest of these was seen that fails a run; None without one."""
    runs: Sequence[RunHead]
    """The newest first."""

    @property
    def verdict(self) -> Verdict:
        """What is said of the feed now."""
        return verdict_now(self.heard, self.standing, is_blank=self.is_blank)

    @property
    def complete_up_to(self) -> datetime | None:
        """As it was said last; None before the first time, and where nothing is proven."""
        return self.complete.up_to if self.complete else None

    def seconds_to_loss(self, now: datetime) -> float | None:
        """The least time until retention may take what is not landed; None where nobody knows.

        Zero: it may be gone at any moment, or nobody has looked for so long.
        """
        if not self.lag or self.lost_at is None:
            return None
        return max(0.0, (self.lost_at - now).total_seconds())


@dataclass(frozen=True, slots=True)
class LogHead:
    """The newest life of a partition's log."""

    generation_id: GenerationId
    partition: int
    ordinal: int
    state: str
    topic_id: str
    first_offset: int
    frontier: int


@dataclass(frozen=True, slots=True)
class BatchHead:
    """One batch without its ranges."""

    number: int
    """Grows from batch to batch."""
    batch_id: BatchId
    label: datetime
    window: Window | None
    state: BatchState
    attempts: int
    planned_by: Owner
    committed_by: Owner | None
    """Whose attempt it was."""
    published_by: Owner | None
    holder: Owner | None
    """None while nobody's lease runs."""
    last_outcome: str | None
    """Of the newest attempt; None while it lives, or was killed."""
    planned_at: datetime
    committed_at: datetime | None
    published_at: datetime | None
    rows: int | None
    holes: int | None
    length_bytes: int | None
    files: int
    partitions: int
    """Of which it has rows; before the commit, of which it claims offsets."""
    replaced: Replaced | None
    """None while all its files are read."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What the ledger knows of one run of a feed."""

    windows: Sequence[Window | None]
    """Of its plans, in their order."""
    planned_at: datetime | None
    """Its first plan; None where it has frozen none."""
    batches: Sequence[BatchHead]
    """Planned or adopted by it, or published; newest first."""
    findings: Sequence[StoredFinding]
    """First seen from its plan until another run's next one."""
    report: int | None
    """The number of the newest report that it has made."""


class Overview(Tables):
    """What pages are made of."""

    def feed_heads(self, feed: FeedName | None = None, *, most_runs: int) -> Sequence[FeedHead]:
        """Every feed that was ever planned, or this one alone, by name."""
        standing: defaultdict[str, dict[Verdict, int]] = defaultdict(dict)
        runs: defaultdict[str, list[RunHead]] = defaultdict(list)
        since: dict[str, datetime] = {}
        failing: dict[str, datetime] = {}
        with self._connection.reading() as transaction:
            for row in transaction.rows("standing_counts", feed=feed):
                counts, verdict = standing[row.feed], Verdict(row.verdict)
                counts[verdict] = counts.get(verdict, 0) + row.findings
                if verdict is not Verdict.WAIVED:
                    since[row.feed] = min(row.since, since.get(row.feed, row.since))
                if verdict in FAILING_VERDICTS:
                    failing[row.feed] = max(row.newest_at, failing.get(row.feed, row.newest_at))
            for row in transaction.rows("newest_runs", feed=feed, most=most_runs):
                runs[row.feed].append(_run_head(row))
            heard = _last_heard(transaction, feed)
            rows = transaction.rows("feed_heads", feed=feed)
        return [
            _feed_head(
                row,
                standing[row.feed],
                (since.get(row.feed), failing.get(row.feed)),
                runs[row.feed],
                heard[row.feed],
            )
            for row in rows
        ]

    def ended_feeds(self) -> Mapping[str, datetime]:
        """The feeds that were retired, and when."""
        return {row.feed: row.retired_at for row in self._connection.rows("ended_feeds")}

    def last_heard(self, feed: FeedName) -> Heard:
        """When each witness of the feed answered last, by its stored reports."""
        with self._connection.reading() as transaction:
            return _last_heard(transaction, feed)[feed]

    def newest_logs(self, feed: FeedName) -> Sequence[LogHead]:
        """The newest life of each partition's log, by partition."""
        return [LogHead(*row) for row in self._connection.rows("newest_logs", feed=feed)]

    def standing_by_partition(self, feed: FeedName) -> Mapping[int | None, Verdict]:
        """The worst verdict of the findings that stand; None for those of no single partition."""
        found: dict[int | None, Verdict] = {}
        for row in self._connection.rows("standing_counts", feed=feed):
            verdict = Verdict(row.verdict)
            found[row.partition] = Verdict.worst_of([verdict, found.get(row.partition, verdict)])
        return found

    def totals_of_logs(self, logs: Sequence[GenerationId]) -> Mapping[GenerationId, LogTotals]:
        """What is accounted for of these generations."""
        rows = self._connection.rows("totals_of_logs", generation_ids=list(logs))
        return {
            GenerationId(row.generation_id): LogTotals(
                rows=row.record_count,
                holes={
                    HoleClass(kind): count
                    for kind, count in zip(row.classes or (), row.counts or (), strict=True)
                },
                lost=row.lost,
                missing_below=0,
            )
            for row in rows
        }

    def batch_heads(
        self,
        feed: FeedName,
        *,
        before: int | None = None,
        batch_ids: Sequence[BatchId] | None = None,
        most: int,
    ) -> Sequence[BatchHead]:
        """The feed's newest batches, or those before a number, or some of these; newest first."""
        with self._connection.reading() as transaction:
            return _batch_heads(transaction, feed, before=before, batch_ids=batch_ids, most=most)

    def run_record(self, feed: FeedName, owner: Owner, *, most: int) -> RunRecord:
        """What this run has planned, landed, published, found and reported; so many batches at
        most.
        """
        with self._connection.reading() as transaction:
            plans = transaction.rows("plans_of_run", feed=feed, owner=owner)
            published = transaction.rows("published_by", feed=feed, owner=owner)
            ids = [each for plan in plans for each in plan.batch_ids]
            ids += [row.batch_id for row in published]
            newest = transaction.row("report_of_run", feed=feed, owner=owner)
            numbers = [
                row.finding_id
                for plan in plans
                for row in transaction.rows(
                    "findings_first_seen",
                    feed=feed,
                    since=plan.planned_at,
                    until=plan.next_planned_at,
                )
            ]
            shown = sorted(set(numbers))[:most]
            found = [read_finding(transaction, each) for each in shown]
            return RunRecord(
                windows=[window_in(plan) for plan in plans],
                planned_at=plans[0].planned_at if plans else None,
                batches=_batch_heads(transaction, feed, batch_ids=ids, most=most) if ids else (),
                findings=[each for each in found if each],
                report=newest.report_id if newest else None,
            )

    def findings_ended(
        self, feed: FeedName, since: datetime, until: datetime | None, *, most: int
    ) -> Sequence[StoredFinding]:
        """The feed's findings that ended from one instant to another, which counts; by number.

        Nothing is read of all the others but when they ended.
        """
        with self._connection.reading() as transaction:
            rows = transaction.rows(
                "findings_ended", feed=feed, since=since, until=until, most=most
            )
            found = [read_finding(transaction, row.finding_id) for row in rows]
        return [each for each in found if each]

    def report_heads(
        self, feed: FeedName, *, before: int | None = None, most: int
    ) -> Sequence[ReportHead]:
        """The feed's newest stored reports, or those before a number; newest first."""
        rows = self._connection.rows(
            "report_heads", feed=feed, before=before, number=None, most=most
        )
        return [report_head(row) for row in rows]

    def report_head(self, feed: FeedName, number: int) -> ReportHead | None:
        """The feed's report of this number; None where it has none."""
        row = self._connection.row("report_heads", feed=feed, before=None, number=number, most=1)
        return None if row is None else report_head(row)

    def report_value(self, feed: FeedName, number: int) -> Mapping[str, Any] | None:
        """What the next method's text says, as plain values."""
        row = self._connection.row("newest_report", feed=feed, until=None, number=number)
        return None if row is None else report_value(row)

    def report_text(self, feed: FeedName, number: int) -> str | None:
        """The very text of the feed's report of this number; None where it has none."""
        row = self._connection.row("newest_report", feed=feed, until=None, number=number)
        return None if row is None else report_text(row)


def _batch_heads(
    transaction: Transaction,
    feed: FeedName,
    *,
    before: int | None = None,
    batch_ids: Sequence[str] | None = None,
    most: int,
) -> list[BatchHead]:
    rows = transaction.rows(
        "batch_heads",
        feed=feed,
        before=before,
        batch_ids=None if batch_ids is None else list(batch_ids),
        most=most,
    )
    replaced = replaced_among(transaction, [row.batch_id for row in rows])
    return [_batch_head(row, replaced.get(row.batch_id)) for row in rows]


def _last_heard(transaction: Transaction, feed: FeedName | None) -> Mapping[str, Heard]:
    found: defaultdict[str, dict[Level, LastHeard]] = defaultdict(dict)
    for row in transaction.rows("last_heard", feed=feed):
        found[row.feed][Level(row.level)] = LastHeard(
            row.heard_at,
            row.silent_since,
        )
    return found


def _waiting(row: Any, ends: Mapping[int, int]) -> list[int | None]:
    """What each log lacks up to its end; None where the newest look has not shown that log."""
    return [
        max(0, ends[number] - frontier) if is_seen and number in ends else None
        for number, frontier, is_seen in zip(row.numbers, row.frontiers, row.seen, strict=True)
    ]


def _feed_head(
    row: Any,
    standing: Mapping[Verdict, int],
    seen: tuple[datetime | None, datetime | None],
    runs: Sequence[RunHead],
    heard: Heard,
) -> FeedHead:
    shown = Shown.of(row.shown) if row.shown else None
    waiting = _waiting(row, shown.by_partition(shown.high_watermarks) if shown else {})
    due = _waiting(row, shown.by_partition(shown.due_ends) if shown else {})
    is_told = row.leaderless_count == 0 and None not in waiting
    return FeedHead(
        feed=FeedName(row.feed),
        topic=row.topic,
        described=row.described and from_plain(FeedInFile, row.described),
        partitions=row.partitions,
        report=None if row.report_id is None else report_head(row),
        looked_at=row.looked_at,
        border_at=row.border_at,
        complete=CompleteHead(row.up_to, CompleteBy(row.by), row.told_at) if row.by else None,
        lag=sum(each or 0 for each in waiting) if is_told else None,
        is_blank=any(is_empty and left != 0 for is_empty, left in zip(row.empty, due, strict=True)),
        lost_at=row.lost_at,
        heard=heard,
        standing=standing,
        open_since=seen[0],
        failing_at=seen[1],
        runs=runs,
    )


def report_head(row: Any) -> ReportHead:
    """A stored report in a few words."""
    return ReportHead(
        number=row.report_id,
        taken_at=row.taken_at,
        verdict=Verdict(row.verdict),
        complete_up_to=row.complete_up_to,
        made_by=row.made_by,
    )


def _run_head(row: Any) -> RunHead:
    return RunHead(
        plan_id=PlanId(row.plan_id),
        owner=Owner(row.owner),
        window=window_in(row),
        planned_at=row.planned_at,
        batches=row.batches,
        published=row.published,
        abandoned=row.abandoned,
        rows=row.record_count,
    )


def _batch_head(row: Any, replaced: Replaced | None) -> BatchHead:
    return BatchHead(
        number=row.batch_number,
        batch_id=BatchId(row.batch_id),
        label=row.label,
        window=window_in(row),
        state=BatchState(row.state),
        attempts=row.newest_token,
        planned_by=Owner(row.planned_by),
        committed_by=row.committed_by,
        published_by=row.published_by,
        holder=row.holder,
        last_outcome=row.outcome,
        planned_at=row.planned_at,
        committed_at=row.committed_at,
        published_at=row.published_at,
        rows=row.record_count,
        holes=row.hole_count,
        length_bytes=row.byte_count,
        files=row.files,
        partitions=row.partitions,
        replaced=replaced,
    )
