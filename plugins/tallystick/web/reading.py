"""From the ledger to the answers of the routes. Decides what comes first, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from tallystick.cli.documents import window_part
from tallystick.domain.identities import FeedName, Owner
from tallystick.domain.report.finding_part import FindingPart, stored_part
from tallystick.domain.report.standing import seconds_to_loss, verdict_now
from tallystick.domain.verdicts import Verdict
from tallystick.ports.ledger import Ledger
from tallystick.ports.overview import BatchHead, FeedHead, RunHead
from tallystick.web.answers import (
    BatchAnswer,
    BatchesAnswer,
    CoverageAnswer,
    FeedAnswer,
    FindingAnswer,
    FindingsAnswer,
    PlannedRunPart,
    ReportPart,
    RunAnswer,
)

RUNS_OF_LIST: Final = 3
RUNS_OF_FEED: Final = 10
MOST_OF_RUN: Final = 100


def feeds_of(ledger: Ledger, now: datetime) -> Sequence[FeedAnswer]:
    """Every feed on record, worst first, then the one that loses something next."""
    found = [_feed_answer(each, now) for each in ledger.feed_heads(most_runs=RUNS_OF_LIST)]
    return sorted(found, key=_worst_first)


def feed_of_name(ledger: Ledger, feed: FeedName, now: datetime) -> FeedAnswer | None:
    """One feed; None where there is none of that name."""
    heads = ledger.feed_heads(feed, most_runs=RUNS_OF_FEED)
    return _feed_answer(heads[0], now) if heads else None


def batches_of(ledger: Ledger, feed: FeedName, before: int | None, limit: int) -> BatchesAnswer:
    """A page of batches."""
    found = ledger.batch_heads(feed, before=before, most=limit + 1)
    has_more = len(found) > limit
    return BatchesAnswer(
        feed=feed,
        batches=[_batch_answer(each) for each in found[:limit]],
        before=found[limit - 1].number if has_more else None,
    )


def findings_of(ledger: Ledger, feed: FeedName, offset: int, limit: int) -> FindingsAnswer:
    """A page of standing findings."""
    found = _worst_findings([stored_part(each) for each in ledger.findings(feed)])
    return FindingsAnswer(
        feed=feed, total=len(found), offset=offset, findings=found[offset : offset + limit]
    )


def finding_of_number(ledger: Ledger, number: int) -> FindingAnswer | None:
    """One finding, whatever became of it."""
    found = ledger.finding(number)
    if found is None:
        return None
    rule = found.finding.rule
    return FindingAnswer(
        finding=stored_part(found),
        compares=rule.compares,
        not_when=rule.not_when,
        remedy=rule.remedy,
    )


def run_of(ledger: Ledger, feed: FeedName, owner: Owner) -> RunAnswer:
    """What a run has done; empty where it has done nothing that is on record."""
    found = ledger.run_record(feed, owner, most=MOST_OF_RUN)
    text = ledger.report_text(feed, found.report) if found.report else None
    told: Mapping[str, Any] = json.loads(text) if text else {"findings": ()}
    numbers = [each["number"] for each in told["findings"][:MOST_OF_RUN] if each["number"]]
    of_report = [each for each in map(ledger.finding, numbers) if each]
    return RunAnswer(
        feed=feed,
        owner=owner,
        windows=[window_part(each) for each in found.windows],
        planned_at=found.planned_at,
        batches=[_batch_answer(each) for each in found.batches],
        findings=_worst_findings([stored_part(each) for each in (*found.findings, *of_report)]),
        report=ReportPart(number=found.report, taken_at=told["taken_at"], verdict=told["verdict"])
        if found.report and text
        else None,
        complete_up_to=told.get("complete_up_to"),
    )


def coverage_of(ledger: Ledger, feed: FeedName, number: int | None) -> CoverageAnswer | None:
    """What is drawn of a stored report, else of the newest; None where there is none.

    The document is read as plain JSON: its thousands of partitions are nobody's here.
    """
    if number is None:
        heads = ledger.feed_heads(feed, most_runs=0)
        number = heads[0].report.number if heads and heads[0].report else None
    text = None if number is None else ledger.report_text(feed, number)
    if number is None or text is None:
        return None
    document: Mapping[str, Any] = json.loads(text)
    drawn = ("taken_at", "coverage", "columns", "band", "ages", "normal", "held_back_by")
    return CoverageAnswer(feed=feed, report=number, **{name: document[name] for name in drawn})


def _worst_findings(found: Sequence[FindingPart]) -> list[FindingPart]:
    return sorted(found, key=lambda each: -each.standing_verdict.severity)


def _worst_first(feed: FeedAnswer) -> tuple[int, float, str]:
    soon = float("inf") if feed.seconds_to_loss is None else feed.seconds_to_loss
    return -feed.verdict.severity, soon, feed.feed


def _feed_answer(head: FeedHead, now: datetime) -> FeedAnswer:
    report = head.report
    complete_up_to = report.complete_up_to if report else None
    standing = head.standing
    return FeedAnswer(
        feed=head.feed,
        topic=head.topic,
        verdict=verdict_now(report.verdict if report else None, standing),
        complete_up_to=complete_up_to,
        lag=head.lag,
        seconds_to_loss=seconds_to_loss(complete_up_to, head.retention_ms, head.lag, now),
        partitions=head.partitions,
        looked_at=head.looked_at,
        report=ReportPart(number=report.number, taken_at=report.taken_at, verdict=report.verdict)
        if report
        else None,
        findings={verdict.value: standing[verdict] for verdict in Verdict if verdict in standing},
        open_findings=sum(
            count for verdict, count in standing.items() if verdict is not Verdict.WAIVED
        ),
        runs=[_run_part(each) for each in head.runs],
    )


def _run_part(head: RunHead) -> PlannedRunPart:
    return PlannedRunPart(
        owner=head.owner,
        window=window_part(head.window),
        planned_at=head.planned_at,
        batches=head.batches,
        published=head.published,
        abandoned=head.abandoned,
        rows=head.rows,
    )


def _batch_answer(head: BatchHead) -> BatchAnswer:
    return BatchAnswer(
        number=head.number,
        batch=head.batch_id,
        window=window_part(head.window),
        label=head.label,
        state=head.state.value,
        attempts=head.attempts,
        holder=head.holder,
        planned_by=head.planned_by,
        committed_by=head.committed_by,
        published_by=head.published_by,
        last_outcome=head.last_outcome,
        planned_at=head.planned_at,
        committed_at=head.committed_at,
        published_at=head.published_at,
        rows=head.rows,
        holes=head.holes,
        length_bytes=head.length_bytes,
        files=head.files,
    )
