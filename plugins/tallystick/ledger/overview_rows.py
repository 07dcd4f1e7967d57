"""The OverviewRecord port on PostgreSQL: the newest rows, and counts that the database adds up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tallystick.domain.batches.states import BatchState, HoleClass
from tallystick.domain.finding_codes import Level
from tallystick.domain.identities import BatchId, FeedName, GenerationId, Owner, PlanId
from tallystick.domain.report.standing import Heard, LastHeard
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.ledger import finding_rows
from tallystick.ledger.connection import LedgerConnection, Transaction
from tallystick.ledger.look_columns import Shown
from tallystick.ledger.report_rows import report_text, report_value
from tallystick.ledger.rows import in_utc
from tallystick.ports.overview import BatchHead, FeedHead, LogHead, ReportHead, RunHead, RunRecord
from tallystick.ports.reports import LogTotals


class PostgresOverview:
    """Fulfils `OverviewRecord`; see there for every promise."""

    _connection: LedgerConnection

    def feed_heads(self, feed: FeedName | None = None, *, most_runs: int) -> Sequence[FeedHead]:
        """Every feed, or one."""
        standing: defaultdict[str, dict[Verdict, int]] = defaultdict(dict)
        runs: defaultdict[str, list[RunHead]] = defaultdict(list)
        with self._connection.reading() as transaction:
            for row in transaction.rows("standing_counts", feed=feed):
                counts, verdict = standing[row.feed], Verdict(row.verdict)
                counts[verdict] = counts.get(verdict, 0) + row.findings
            for row in transaction.rows("newest_runs", feed=feed, most=most_runs):
                runs[row.feed].append(_run_head(row))
            heard = _last_heard(transaction, feed)
            rows = transaction.rows("feed_heads", feed=feed)
        return [
            _feed_head(row, standing[row.feed], runs[row.feed], heard[row.feed]) for row in rows
        ]

    def last_heard(self, feed: FeedName) -> Heard:
        """When each witness answered last."""
        with self._connection.reading() as transaction:
            return _last_heard(transaction, feed)[feed]

    def newest_logs(self, feed: FeedName) -> Sequence[LogHead]:
        """The newest life of each partition's log."""
        with self._connection.reading() as transaction:
            return [LogHead(*row) for row in transaction.rows("newest_logs", feed=feed)]

    def standing_by_partition(self, feed: FeedName) -> Mapping[int | None, Verdict]:
        """The worst verdict of the findings that stand."""
        found: dict[int | None, Verdict] = {}
        with self._connection.reading() as transaction:
            for row in transaction.rows("standing_counts", feed=feed):
                verdict = Verdict(row.verdict)
                found[row.partition] = Verdict.worst_of(
                    [verdict, found.get(row.partition, verdict)]
                )
        return found

    def totals_of_logs(self, logs: Sequence[GenerationId]) -> Mapping[GenerationId, LogTotals]:
        """What is accounted for of these generations."""
        with self._connection.reading() as transaction:
            rows = transaction.rows("totals_of_logs", generation_ids=list(logs))
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
        self, feed: FeedName, *, before: int | None = None, most: int
    ) -> Sequence[BatchHead]:
        """The feed's newest batches."""
        with self._connection.reading() as transaction:
            return _batch_heads(transaction, feed, before=before, most=most)

    def run_record(self, feed: FeedName, owner: Owner, *, most: int) -> RunRecord:
        """What this run has done."""
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
            found = [finding_rows.finding(transaction, each) for each in shown]
            return RunRecord(
                windows=[_window(plan) for plan in plans],
                planned_at=in_utc(plans[0].planned_at) if plans else None,
                batches=_batch_heads(transaction, feed, batch_ids=ids, most=most) if ids else (),
                findings=[each for each in found if each],
                report=newest.report_id if newest else None,
            )

    def findings_ended(
        self, feed: FeedName, since: datetime, until: datetime | None, *, most: int
    ) -> Sequence[StoredFinding]:
        """The feed's findings that ended between two instants."""
        with self._connection.reading() as transaction:
            rows = transaction.rows(
                "findings_ended", feed=feed, since=since, until=until, most=most
            )
            found = [finding_rows.finding(transaction, row.finding_id) for row in rows]
        return [each for each in found if each]

    def report_heads(
        self, feed: FeedName, *, before: int | None = None, most: int
    ) -> Sequence[ReportHead]:
        """The feed's newest stored reports."""
        with self._connection.reading() as transaction:
            rows = transaction.rows(
                "report_heads", feed=feed, before=before, number=None, most=most
            )
        return [_report_head(row) for row in rows]

    def report_head(self, feed: FeedName, number: int) -> ReportHead | None:
        """The feed's report of this number."""
        with self._connection.reading() as transaction:
            row = transaction.row("report_heads", feed=feed, before=None, number=number, most=1)
        return None if row is None else _report_head(row)

    def report_value(self, feed: FeedName, number: int) -> Mapping[str, Any] | None:
        """What the feed's report of this number says."""
        with self._connection.reading() as transaction:
            row = transaction.row("report_numbered", feed=feed, number=number)
        return None if row is None else report_value(row)

    def report_text(self, feed: FeedName, number: int) -> str | None:
        """The feed's report of this number."""
        with self._connection.reading() as transaction:
            row = transaction.row("report_numbered", feed=feed, number=number)
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
    return [_batch_head(row) for row in rows]


def _last_heard(transaction: Transaction, feed: FeedName | None) -> Mapping[str, Heard]:
    found: defaultdict[str, dict[Level, LastHeard]] = defaultdict(dict)
    for row in transaction.rows("last_heard", feed=feed):
        found[row.feed][Level(row.level)] = LastHeard(
            in_utc(row.heard_at) if row.heard_at else None,
            in_utc(row.silent_since) if row.silent_since else None,
        )
    return found


def _lag(row: Any) -> int | None:
    """What is not landed of each log added up; None for other logs, or where one was not told."""
    if row.leaderless_count != 0 or row.of_this_topic != row.partitions:
        return None
    shown = Shown.of(row.shown)
    ends = shown.by_partition(shown.high_watermarks)
    frontiers: Mapping[int, int] = dict(zip(row.numbers, row.frontiers, strict=True))
    return sum(max(0, ends.get(each, 0) - frontier) for each, frontier in frontiers.items())


def _feed_head(
    row: Any, standing: Mapping[Verdict, int], runs: Sequence[RunHead], heard: Heard
) -> FeedHead:
    return FeedHead(
        feed=FeedName(row.feed),
        topic=row.topic,
        partitions=row.partitions,
        report=None if row.report_id is None else _report_head(row),
        looked_at=in_utc(row.looked_at) if row.looked_at else None,
        lag=_lag(row),
        lost_at=in_utc(row.lost_at) if row.lost_at else None,
        heard=heard,
        standing=standing,
        runs=runs,
    )


def _report_head(row: Any) -> ReportHead:
    return ReportHead(
        number=row.report_id,
        taken_at=in_utc(row.taken_at),
        verdict=Verdict(row.verdict),
        complete_up_to=in_utc(row.complete_up_to) if row.complete_up_to else None,
        made_by=_owner(row.made_by),
    )


def _run_head(row: Any) -> RunHead:
    return RunHead(
        plan_id=PlanId(row.plan_id),
        owner=Owner(row.owner),
        window=_window(row),
        planned_at=in_utc(row.planned_at),
        batches=row.batches,
        published=row.published,
        abandoned=row.abandoned,
        rows=row.record_count,
    )


def _batch_head(row: Any) -> BatchHead:
    return BatchHead(
        number=row.batch_number,
        batch_id=BatchId(row.batch_id),
        label=in_utc(row.label),
        window=_window(row),
        state=BatchState(row.state),
        attempts=row.newest_token,
        planned_by=Owner(row.planned_by),
        committed_by=_owner(row.committed_by),
        published_by=_owner(row.published_by),
        holder=_owner(row.holder),
        last_outcome=row.outcome,
        planned_at=in_utc(row.planned_at),
        committed_at=in_utc(row.committed_at) if row.committed_at else None,
        published_at=in_utc(row.published_at) if row.published_at else None,
        rows=row.record_count,
        holes=row.hole_count,
        length_bytes=row.byte_count,
        files=row.files,
    )


def _owner(text: str | None) -> Owner | None:
    return None if text is None else Owner(text)


def _window(row: Any) -> Window | None:
    if row.window_from is None:
        return None
    return Window(in_utc(row.window_from), in_utc(row.window_until))
