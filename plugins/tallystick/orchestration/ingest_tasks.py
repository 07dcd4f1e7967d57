"""What the tasks of an ingest run do: one workflow each, in Airflow's terms. They decide nothing.

Workflows are imported by the task that needs them: every task and the DAG processor read this
module, and all workflows together take longer than a small task.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowSkipException,
    DownstreamTasksSkipped,
)

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId, FeedName
from tallystick.errors import IngestionError
from tallystick.orchestration.announcement import asset_of, landed_extra
from tallystick.orchestration.connections import open_ledger, services_of
from tallystick.orchestration.failures import in_airflow_terms
from tallystick.orchestration.run_context import (
    Context,
    failed_tasks,
    is_dry_run,
    owner_of,
    window_of,
)
from tallystick.settings.feed import Feed

if TYPE_CHECKING:
    from tallystick.workflows.planning.plan_report import PlanReport

log = logging.getLogger(__name__)

FINISH_TASK: Final = "finish"
PLAN_TASK: Final = "plan"
ANNOUNCE_TASK: Final = "announce"
CHECK_TASK: Final = "check"
PLANNED_AT: Final = "planned_at"


def finish(feed: Feed, context: Context) -> None:
    """Roll forward what earlier runs committed and did not publish.

    In a dry run nothing is, and the tasks that would wait for the end of all others are skipped.
    """
    from tallystick.workflows.committing import publishing

    if is_dry_run(context):
        log.info("A dry run: nothing is finished, swept or checked.")
        raise DownstreamTasksSkipped(tasks=[ANNOUNCE_TASK, CHECK_TASK])
    with in_airflow_terms(), open_ledger() as ledger:
        waiting = ledger.unpublished(FeedName(feed.name))
    log.info("%d batches of earlier runs were left to publish.", len(waiting))
    if waiting:
        with in_airflow_terms(), services_of(feed) as services:
            publishing.finish(services, owner_of(context))


def plan(feed: Feed, context: Context) -> list[str]:
    """The ids of the run's batches; none in a dry run.

    Without one, Airflow skips the tasks that need one, those of an earlier life of the run too.
    """
    from tallystick.domain.planning.due import MOST_BATCHES
    from tallystick.workflows.planning import plan as planning

    with in_airflow_terms(), services_of(feed) as services:
        window = window_of(feed.name, context)
        if is_dry_run(context):
            _tell_dry_run(planning.dry_run(services, window, owner_of(context)))
            return []
        report = planning.plan_feed(services, window, owner_of(context))
    context["ti"].xcom_push(PLANNED_AT, report.planned_at.isoformat())
    batches = [str(each.batch_id) for each in report.all_batches]
    if len(batches) > MOST_BATCHES:
        log.warning(
            "%d batches are more than one run can carry out; later runs adopt the last %d.",
            len(batches),
            len(batches) - MOST_BATCHES,
        )
    if not batches:
        log.info("Nothing to land.")
    return batches[:MOST_BATCHES]


def commit_and_publish(
    feed: Feed, context: Context, batch_id: str, attempt: dict[str, Any] | None
) -> str:
    """The batch's id, once what the attempt has written is proven and readers find it.

    Without an attempt nothing was landed, and what was committed before is published.
    """
    from tallystick.domain.batches.batch import Attempt
    from tallystick.workflows.committing import publishing, verification

    with in_airflow_terms(), services_of(feed) as services:
        if attempt is None:
            log.info("Nothing was landed, so there is nothing to verify.")
        else:
            verification.verify_and_commit(services, Attempt(**attempt))
        if services.ledger.committed_batch(BatchId(batch_id)) is None:
            raise AirflowSkipException(f"Batch {batch_id} was given up: nothing to publish.")
        publishing.publish(services, BatchId(batch_id), owner_of(context))
    return batch_id


def announce(feed: Feed, context: Context) -> None:
    """Tell the asset what this run has published, for earlier runs too; skipped when that is
    nothing.

    The ledger says it, whichever try of whichever task did it, and died. What the run has planned
    and another one has published is told by both.
    """
    planned = context["ti"].xcom_pull(task_ids=PLAN_TASK) or ()
    with in_airflow_terms(), open_ledger() as ledger:
        own = ledger.published_by(FeedName(feed.name), owner_of(context))
        found = [ledger.committed_batch(BatchId(each)) for each in dict.fromkeys([*own, *planned])]
    published = [each.plan for each in found if each and each.state is BatchState.PUBLISHED]
    if not published:
        raise AirflowSkipException("This run has published nothing.")
    extra = landed_extra(published)
    context["outlet_events"][asset_of(feed.name)].extra = extra
    log.info(
        "Told %s of %d batches: %s", asset_of(feed.name).uri, extra["batches"], extra["ranges"]
    )


def check(feed: Feed, context: Context) -> None:
    """Sweep, then fail loudly when something is wrong: everything that could be landed has been."""
    from tallystick.workflows.asking import sweeping
    from tallystick.workflows.landing import checking
    from tallystick.workflows.landing.run import noted

    failed = failed_tasks(context)
    if failed:
        log.error("Failed in this run: %s", ", ".join(failed))
    troubles: list[IngestionError] = []
    with in_airflow_terms(), services_of(feed) as services:
        with noted(troubles):
            log.info("%d staging directories were swept.", sweeping.sweep(services))
        since = context["ti"].xcom_pull(task_ids=PLAN_TASK, key=PLANNED_AT)
        if since is None:
            raise AirflowFailException(
                f"Feed {feed.name} was not checked, because nothing was planned. Read the log of"
                f" the task {PLAN_TASK}, then run again."
            )
        findings = checking.check(services, datetime.fromisoformat(since))
        on_record = services.ledger.findings(services.feed_name)
        checking.require_clean(feed.name, findings, on_record)
        for trouble in troubles:
            raise trouble
    if failed:
        raise AirflowFailException(
            f"Feed {feed.name}: {', '.join(failed)}. What could be landed has been. Read the logs"
            " of these tasks; the next run takes up what is left, or clear them to try again now."
        )


def _tell_dry_run(report: PlanReport) -> None:
    window = f" for window {report.window}" if report.window else ""
    if report.is_resumed:
        log.info("The window's plan was made before, and is read again.")
    log.info(
        "A dry run of feed %s%s: %d offsets are due; %d batches would be planned, %d adopted."
        " Nothing was changed.",
        report.feed,
        window,
        report.wanted,
        len(report.batches),
        len(report.adopted),
    )
    for warning in report.warnings:
        log.warning("%s", warning)
    if report.left:
        log.info("%d due offsets would be left to the next run, by the limits of one.", report.left)
    for number, batch in enumerate(report.all_batches, start=1):
        ranges = "; ".join(str(each.offsets) for each in batch.ranges[:20])
        left_out = len(batch.ranges) - 20
        log.info(
            "Batch %d%s: %d offsets in %d partitions: %s%s",
            number,
            f" under window {batch.window}" if batch.window else "",
            batch.span,
            len(batch.ranges),
            ranges,
            f"; and {left_out} more" if left_out > 0 else "",
        )
    for finding in report.findings:
        log.warning("Found: %s", finding)
