"""`plan` and `land`: a run's plan for show, and a run without Airflow."""

from __future__ import annotations

import logging

import typer

from tallystick.cli.answers import (
    CLEAN,
    COULD_NOT,
    FINDINGS,
    WRONG_USE,
    Answer,
    deliver,
    error_details,
    exit_code_of,
)
from tallystick.cli.documents import LandDocument, LandedBatchPart, Outcome, PlanDocument
from tallystick.cli.options import FeedArgument, JsonOption, WindowEnd, WindowStart, window_of
from tallystick.cli.parts import (
    finding_part,
    held_batch_part,
    holes_part,
    open_finding_part,
    planned_batch_part,
    window_part,
)
from tallystick.cli.progress import first_word, told
from tallystick.cli.stage import Stage, stage_of
from tallystick.cli.views import land_view, plan_view
from tallystick.domain.rules.findings import FAILING_VERDICTS
from tallystick.domain.window import Window
from tallystick.workflows.landing.checking import open_beside
from tallystick.workflows.landing.run import BatchOutcome, RunReport, land_feed
from tallystick.workflows.planning.plan import PlanReport, dry_run


def plan(
    context: typer.Context,
    feed: FeedArgument,
    window_start: WindowStart = None,
    window_end: WindowEnd = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a run would land now. Changes nothing."""
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
    with told(f"planning {name}", logging.ERROR), stage.services(feed) as services:
        first_word(services)
        report = dry_run(services, window)
    document = PlanDocument(
        feed=report.feed,
        topic=report.topic,
        window=window_part(report.window),
        wanted=report.wanted,
        planned=report.planned,
        batches=[planned_batch_part(each, is_named=False) for each in report.batches],
        adopted=[planned_batch_part(each, is_named=True) for each in report.adopted],
        held=[held_batch_part(each) for each in report.held],
        findings=[finding_part(each) for each in report.findings],
        warnings=report.warnings,
    )
    is_failing = any(each.verdict in FAILING_VERDICTS for each in report.findings)
    return Answer(document, plan_view(document), FINDINGS if is_failing else CLEAN)


def _landed(stage: Stage, name: str, window: Window | None) -> Answer:
    feed = stage.feed(name)
    with told(f"landing {name}"), stage.services(feed) as services:
        first_word(services)
        report = land_feed(services, window, stage.new_owner())
    numbers = {each.finding.key: each.finding_id for each in report.on_record}
    document = LandDocument(
        feed=report.plan.feed,
        topic=report.plan.topic,
        window=window_part(report.plan.window),
        plan=report.plan.plan_id,
        is_resumed=report.plan.is_resumed,
        wanted=report.plan.wanted,
        planned=report.plan.planned,
        batches=[_landed_batch_part(report.plan, each) for each in report.batches],
        held=[held_batch_part(each) for each in report.plan.held],
        findings=[finding_part(each, numbers.get(each.key)) for each in report.findings],
        open_findings=[
            open_finding_part(each) for each in open_beside(report.findings, report.on_record)
        ],
        errors=[error_details(each) for each in report.troubles],
        warnings=report.plan.warnings,
    )
    return Answer(document, land_view(document), _land_exit_code(report))


def _landed_batch_part(plan: PlanReport, outcome: BatchOutcome) -> LandedBatchPart:
    commit = outcome.commit
    adopted = {each.batch_id for each in plan.adopted}
    return LandedBatchPart(
        batch=outcome.batch_id,
        is_adopted=outcome.batch_id in adopted,
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
