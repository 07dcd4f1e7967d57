"""What the tasks of an ingest run do: one workflow each, in Airflow's terms. They decide nothing.

Workflows are imported by the task that needs them: every task and the DAG processor read this
module, and all workflows together take longer than a small task.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId, FeedName
from tallystick.errors import IngestionError
from tallystick.orchestration import dry_run
from tallystick.orchestration.airflow_releases import (
    AirflowFailException,
    AirflowSkipException,
    DownstreamTasksSkipped,
)
from tallystick.orchestration.announcement import asset_of, landed_extra
from tallystick.orchestration.connections import bounded_by_airflow, open_ledger, services_of
from tallystick.orchestration.failures import (
    failed_as_said,
    failed_check,
    in_airflow_terms,
)
from tallystick.orchestration.run_context import (
    Context,
    failed_tasks,
    is_dry_run,
    owner_of,
    window_of,
)
from tallystick.orchestration.stats import tell_committed
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
    from tallystick.workflows.landing.run import settle_and_plan
    from tallystick.workflows.planning.plan import dry_run as dry_plan

    with in_airflow_terms(), services_of(feed) as opened:
        services = bounded_by_airflow(opened)
        window = window_of(feed.name, context)
        if is_dry_run(context):
            report = dry_plan(services, window, owner_of(context))
            dry_run.show(context, _dry_run_lines(report))
            return []
        report = settle_and_plan(services, window, owner_of(context))
    context["ti"].xcom_push(PLANNED_AT, report.planned_at.isoformat())
    batches = [str(each.batch_id) for each in report.all_batches]
    if len(batches) > services.most_batches:
        log.warning(
            "%d batches are more than one run can carry out; later runs adopt the last %d.",
            len(batches),
            len(batches) - services.most_batches,
        )
    if not batches:
        log.info("Nothing to land.")
    return batches[: services.most_batches]


def commit_and_publish(
    feed: Feed, context: Context, batch_id: str, attempt: dict[str, Any] | None
) -> str:
    """The batch's id, once what the attempt has written is proven and readers find it.

    Without an attempt nothing was landed, and what was committed before is published.
    """
    from tallystick.domain.batches.batch import Attempt
    from tallystick.workflows.committing import publishing, verification

    report = None
    with in_airflow_terms(), services_of(feed) as services:
        if attempt is None:
            log.info("Nothing was landed, so there is nothing to verify.")
        else:
            report = verification.verify_and_commit(services, Attempt(**attempt))
        batch = services.ledger.committed_batch(BatchId(batch_id))
        if batch is None:
            raise AirflowSkipException(f"Batch {batch_id} was given up: nothing to publish.")
        if report:
            length = sum(each.length_bytes for each in batch.manifest.files)
            tell_committed(feed.name, rows=report.record_count, length_bytes=length)
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
    """Compare, sweep, then fail loudly when something is wrong: what could be landed has been.

    Where a row differs, no other copy of it may be swept.
    """
    from tallystick.workflows.comparing.second_reading import NOTHING_COMPARED
    from tallystick.workflows.landing import checking, sweeping
    from tallystick.workflows.landing.run import noted

    failed = failed_tasks(context)
    if failed:
        log.error("Failed in this run: %s", ", ".join(failed))
    troubles: list[IngestionError] = []
    with in_airflow_terms(), services_of(feed) as services:
        compared = NOTHING_COMPARED
        with noted(troubles):
            compared = checking.compare(services)
        with noted(troubles):
            log.info("%d staging directories were swept.", sweeping.sweep(services))
        since = context["ti"].xcom_pull(task_ids=PLAN_TASK, key=PLANNED_AT)
        if since is None:
            raise AirflowFailException(
                f"Feed {feed.name} was not checked, because nothing was planned. Read the log of"
                f" the task {PLAN_TASK}, then run again."
            )
        begun, owner = datetime.fromisoformat(since), owner_of(context)
        findings = checking.check(services, begun, owner, compared)
        on_record = services.ledger.findings(services.feed_name)
        failure = checking.failure(feed.name, findings, on_record)
        if failure:
            raise failed_check(failure, context)
        for trouble in troubles:
            raise trouble
    if failed:
        raise failed_as_said(
            f"Feed {feed.name}: {', '.join(failed)}",
            "Read the logs of these tasks. What could be landed has been; the next run takes up"
            " what is left, or clear them to try again now.",
            context,
        )


def _dry_run_lines(report: PlanReport) -> Iterator[tuple[int, str]]:
    """Each line with the level at which it is logged."""
    from tallystick.domain.report.troubles import troubles_among

    window = f" for window {report.window}" if report.window else ""
    if report.is_resumed:
        yield logging.INFO, "The window's plan was made before, and is read again."
    yield (
        logging.INFO,
        f"A dry run of feed {report.feed}{window}: {report.wanted} offsets are due;"
        f" {len(report.batches)} batches would be planned, {len(report.adopted)} adopted. Nothing"
        " was changed.",
    )
    yield from ((logging.WARNING, warning) for warning in report.warnings)
    if report.left:
        words = f"{report.left} due offsets would be left to the next run, by the limits of one."
        yield logging.INFO, words
    for number, batch in enumerate(report.all_batches, start=1):
        under = f" under window {batch.window}" if batch.window else ""
        ranges = "; ".join(str(each.offsets) for each in batch.ranges[:20])
        left_out = len(batch.ranges) - 20
        more = f"; and {left_out} more" if left_out > 0 else ""
        yield (
            logging.INFO,
            f"Batch {number}{under}: {batch.span} offsets in {len(batch.ranges)} partitions:"
            f" {ranges}{more}",
        )
    for trouble in troubles_among(report.findings):
        yield logging.WARNING, f"Found: {trouble}"
