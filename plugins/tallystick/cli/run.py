"""`plan` and `land`: a run's plan for show, and a run without Airflow."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import typer

from tallystick.cli.answers import (
    CLEAN,
    COULD_NOT,
    FINDINGS,
    WRONG_USE,
    Answer,
    Block,
    Table,
    deliver,
    error_details,
    exit_code_of,
    hole_count,
    to_second,
)
from tallystick.cli.findings import finding_lines
from tallystick.cli.options import FeedArgument, JsonOption, WindowEnd, WindowStart, window_of
from tallystick.cli.progress import watched
from tallystick.cli.stage import Stage, stage_of
from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.report.finding_part import FindingPart, finding_part, stored_part
from tallystick.domain.report.troubles import troubles_of
from tallystick.domain.rules.findings import FAILING_VERDICTS
from tallystick.domain.rules.run_news import open_beside
from tallystick.domain.window import Window
from tallystick.report.documents import (
    Document,
    ErrorDetails,
    Part,
    RangePart,
    holes_part,
    range_part,
)
from tallystick.report.wording import counted, grouped, trouble_words, troubles_text, window_text
from tallystick.workflows.landing.run import BatchOutcome, RunReport, land_feed
from tallystick.workflows.planning.plan import NEWEST_WINDOW, dry_run


class PlannedBatchPart(Part):
    """One batch of a plan."""

    batch_id: str | None
    """Null while it is only planned for show."""
    generation: int
    window: Window | None
    """Its records' own; null where the run has none."""
    offsets: int
    ranges: Sequence[RangePart]


class HeldBatchPart(Part):
    """An unfinished batch that another run holds."""

    batch_id: str
    offsets: int
    held_by: str | None
    seconds_left: float
    """Without a sign of life from its holder, a run adopts it after this time."""


class PlanDocument(Document):
    """`plan`: what a run would do now."""

    format: str = "tallystick-plan-1"
    feed: str
    topic: str
    window: Window | None
    is_resumed: bool
    wanted: int
    planned: int
    batches: Sequence[PlannedBatchPart]
    adopted: Sequence[PlannedBatchPart]
    held: Sequence[HeldBatchPart]
    findings: Sequence[FindingPart]
    warnings: Sequence[str]
    """What the operator may not want of such a run, and what this look could not foresee."""


Outcome = Literal["published", "left", "failed", "nothing"]


class LandedBatchPart(Part):
    """What became of one batch in this run or repair."""

    batch_id: str
    is_adopted: bool
    outcome: Outcome
    rows: int | None
    holes: Mapping[str, int] | None
    files: int | None
    directory: str | None
    left_to: str | None
    error: ErrorDetails | None


class LandDocument(Document):
    """`land`: what a run did."""

    format: str = "tallystick-land-1"
    feed: str
    topic: str
    window: Window | None
    plan: int | None
    is_resumed: bool
    wanted: int
    planned: int
    batches: Sequence[LandedBatchPart]
    held: Sequence[HeldBatchPart]
    findings: Sequence[FindingPart]
    """New ones, and those that last."""
    open_findings: Sequence[FindingPart]
    """Those that stand open from before."""
    errors: Sequence[ErrorDetails]
    """Of the steps around the batches: finish, sweep, check."""
    warnings: Sequence[str]
    """What the operator may not want of this run; told on standard error beforehand."""


_MOST_OPEN: Final = 20


def plan(
    context: typer.Context,
    feed: FeedArgument,
    window_start: WindowStart = None,
    window_end: WindowEnd = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a run would land now. Change nothing."""
    deliver(
        lambda: _planned(stage_of(context), feed, window_of(window_start, window_end)),
        as_json=as_json,
    )


def land(
    context: typer.Context,
    feed: FeedArgument,
    window_start: WindowStart = None,
    window_end: WindowEnd = None,
    as_json: JsonOption = False,
) -> None:
    """Plan, land, verify, commit and publish all that is due, without Airflow."""
    deliver(
        lambda: _landed(stage_of(context), feed, window_of(window_start, window_end)),
        as_json=as_json,
    )


def _planned(stage: Stage, name: str, window: Window | None) -> Answer:
    feed = stage.feed(name)
    with watched(stage, feed, f"planning {name}", logging.ERROR) as services:
        report = dry_run(services, window)
    document = PlanDocument(
        feed=report.feed,
        topic=report.topic,
        window=report.window,
        is_resumed=report.is_resumed,
        wanted=report.wanted,
        planned=report.planned,
        batches=[_planned_batch_part(each, is_named=report.is_resumed) for each in report.batches],
        adopted=[_planned_batch_part(each, is_named=True) for each in report.adopted],
        held=[_held_batch_part(each) for each in report.held],
        findings=[finding_part(each) for each in report.findings],
        warnings=report.warnings,
    )
    is_failing = any(each.verdict in FAILING_VERDICTS for each in report.findings)
    notes = [NEWEST_WINDOW % report.window] if report.window != window else []
    return Answer(document, plan_view(document), FINDINGS if is_failing else CLEAN, notes)


def _landed(stage: Stage, name: str, window: Window | None) -> Answer:
    feed = stage.feed(name)
    with watched(stage, feed, f"landing {name}") as services:
        report = land_feed(services, window, stage.new_owner())
    stored = {each.finding.key: each for each in report.on_record}
    adopted = {each.batch_id for each in (*report.plan.adopted, *report.plan.rescued)}
    document = LandDocument(
        feed=report.plan.feed,
        topic=report.plan.topic,
        window=report.plan.window,
        plan=report.plan.plan_id,
        is_resumed=report.plan.is_resumed,
        wanted=report.plan.wanted,
        planned=report.plan.planned,
        batches=[landed_part(each, is_adopted=each.batch_id in adopted) for each in report.batches],
        held=[_held_batch_part(each) for each in report.plan.held],
        findings=[finding_part(each, stored.get(each.key)) for each in report.findings],
        open_findings=[
            stored_part(each) for each in open_beside(report.findings, report.on_record)
        ],
        errors=[error_details(each) for each in report.failures],
        warnings=report.plan.warnings,
    )
    return Answer(document, land_view(document), _land_exit_code(report))


def landed_part(outcome: BatchOutcome, *, is_adopted: bool) -> LandedBatchPart:
    """What became of a batch of a run or a repair."""
    commit = outcome.commit
    return LandedBatchPart(
        batch_id=outcome.batch_id,
        is_adopted=is_adopted,
        outcome=outcome_of(outcome),
        rows=commit.record_count if commit else None,
        holes=holes_part(commit.hole_counts) if commit else None,
        files=commit.file_count if commit else None,
        directory=outcome.directory,
        left_to=outcome.left_to,
        error=error_details(outcome.error) if outcome.error else None,
    )


def outcome_of(outcome: BatchOutcome) -> Outcome:
    """What became of a batch, in one word."""
    if outcome.error:
        return "failed"
    if outcome.left_to:
        return "left"
    return "published" if outcome.directory else "nothing"


def _land_exit_code(report: RunReport) -> int:
    """What could not be done weighs more than what was found: it asks for another run."""
    codes = {exit_code_of(error) for error in report.errors}
    if COULD_NOT in codes:
        return COULD_NOT
    if WRONG_USE in codes:
        return WRONG_USE
    is_failing = any(each.verdict in FAILING_VERDICTS for each in report.findings)
    return FINDINGS if codes or is_failing else CLEAN


def _planned_batch_part(plan: BatchPlan, *, is_named: bool) -> PlannedBatchPart:
    """A batch of a plan; a dry run's batches have no name that lasts."""
    return PlannedBatchPart(
        batch_id=plan.batch_id if is_named else None,
        generation=plan.ordinal,
        window=plan.window,
        offsets=plan.span,
        ranges=[range_part(each.offsets) for each in plan.ranges],
    )


def _held_batch_part(status: BatchStatus) -> HeldBatchPart:
    """A batch that is left to the run that holds it."""
    return HeldBatchPart(
        batch_id=status.plan.batch_id,
        offsets=status.plan.span,
        held_by=status.holder,
        seconds_left=round(max(0.0, status.lease_seconds_left), 1),
    )


def plan_view(document: PlanDocument) -> list[Block]:
    """What a run would do, one row for each range."""
    due = (
        f"the window's plan is read again, {grouped(document.planned)} offsets"
        if document.is_resumed
        else f"{grouped(document.planned)} of {grouped(document.wanted)} due offsets"
    )
    blocks: list[Block] = [
        f"{_subject(document)}: {due} in {counted('batch', len(document.batches))},"
        f" {len(document.adopted)} adopted. Nothing was changed."
    ]
    blocks += _limits_lines(document)
    rows = [
        row
        for index, batch in enumerate((*document.adopted, *document.batches), start=1)
        for row in _planned_rows(index, batch)
    ]
    if rows:
        headers = (
            "batch", "generation#", "window (UTC)", "partition#", "from#", "until#", "offsets#"
        )  # fmt: skip
        blocks.append(Table(headers, rows))
    return [*blocks, *_held_lines(document.held), *finding_lines(document.findings)]


def _subject(document: PlanDocument | LandDocument) -> str:
    window = f" {document.window}" if document.window else ""
    return f"Feed {document.feed}, topic {document.topic}{window}"


def _limits_lines(document: PlanDocument | LandDocument) -> list[Block]:
    """Warnings, and how many due offsets the plan leaves over."""
    lines: list[Block] = [f"warning: {each}" for each in document.warnings]
    left = document.wanted - document.planned
    if left > 0:
        lines.append(
            f"{grouped(left)} due offsets are left to the next run: one run takes no more."
        )
    return lines


def _held_lines(held: Sequence[HeldBatchPart]) -> list[Block]:
    return [
        f"Batch {each.batch_id} ({grouped(each.offsets)} offsets) is held by {each.held_by}. If"
        f" that run is dead, another run adopts the batch in {each.seconds_left:.0f} s."
        for each in held
    ]


def _planned_rows(index: int, batch: PlannedBatchPart) -> list[list[str]]:
    name = batch.batch_id or f"new {index}"
    start = [name, str(batch.generation), window_text(batch.window)]
    return [[*start, *_range_cells(each)] for each in batch.ranges]


def _range_cells(part: RangePart) -> list[str]:
    span = part.until_offset - part.from_offset
    return [
        str(part.partition), grouped(part.from_offset), grouped(part.until_offset), grouped(span)
    ]  # fmt: skip


def land_view(document: LandDocument) -> list[Block]:
    """What a run did, one row for each batch."""
    rows = sum(each.rows or 0 for each in document.batches)
    count = len(document.batches)
    blocks: list[Block] = [
        f"{_subject(document)}: {grouped(rows)} rows landed in {counted('batch', count)}."
        if count
        else f"{_subject(document)}: nothing {'else ' if document.held else ''}is due,"
        " nothing was landed."
    ]
    blocks += _limits_lines(document)
    if count:
        headers = ("batch", "outcome", "rows#", "holes#", "files#", "where")
        blocks.append(Table(headers, [_landed_cells(each) for each in document.batches]))
    blocks += _held_lines(document.held)
    for error in (*(each.error for each in document.batches), *document.errors):
        if error:
            blocks += [f"error: {error.what}", f"next: {error.next_step}"]
    return [*blocks, *finding_lines(document.findings), *_open_lines(document)]


def _open_lines(document: LandDocument) -> list[Block]:
    """Findings that stand open from before this run."""
    standing = document.open_findings
    if not standing:
        return []
    troubles = troubles_of(standing)
    counted_ones = troubles_text(len(troubles), len(standing))
    lines: list[Block] = [f"Open from before: {counted_ones}."]
    for each in troubles[:_MOST_OPEN]:
        lines += trouble_words(each)
        seen = [one.first_seen_at for one in each.findings if one.first_seen_at]
        lines.append(f"  open since {to_second(min(seen, default=None))}")
    left = len(troubles) - _MOST_OPEN
    more = f" {grouped(left)} more are not shown." if left > 0 else ""
    return [*lines, f"  next: tallystick findings {document.feed}{more}"]


def _landed_cells(batch: LandedBatchPart) -> list[str]:
    return [
        batch.batch_id,
        batch.outcome + (" (adopted)" if batch.is_adopted else ""),
        grouped(batch.rows),
        hole_count(batch.holes),
        grouped(batch.files),
        batch.directory or batch.left_to or "-",
    ]
