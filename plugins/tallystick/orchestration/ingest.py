"""The DAG `ingest_<feed>`: plan, per batch land, then commit and publish; announce; check.

A task is one workflow in Airflow's terms, and decides nothing. Workflows are imported by the task
that needs them: every task and the DAG processor read this module, and all workflows together take
longer than a small task.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from airflow.sdk import DAG, Asset, Param, TriggerRule

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId, FeedName
from tallystick.domain.offsets.ranges import OffsetRange, union_of
from tallystick.errors import IngestionError
from tallystick.orchestration.airflow_releases import (
    AirflowFailException,
    AirflowSkipException,
    CronDataIntervalTimetable,
    DownstreamTasksSkipped,
)
from tallystick.orchestration.batch_tasks import batch_tasks
from tallystick.orchestration.connections import bounded_by_airflow, open_ledger, services_of
from tallystick.orchestration.dag_ids import CHECK_TASK, INGEST
from tallystick.orchestration.failures import failed_as_said, failed_check, in_airflow_terms
from tallystick.orchestration.feed_dag import feed_dag
from tallystick.orchestration.feed_task import FeedTask
from tallystick.orchestration.last_tasks import announce_complete_after, notify_after, tell_asset
from tallystick.orchestration.run_context import (
    Context,
    failed_tasks,
    is_dry_run,
    owner_of,
    require_known_conf,
    show_dry_run,
    window_of,
)
from tallystick.report.wording import grouped
from tallystick.settings.feed import Feed, FeedFile

log = logging.getLogger(__name__)

FINISH_TASK: Final = "finish"
PLAN_TASK: Final = "plan"
ANNOUNCE_TASK: Final = "announce"
PLANNED_AT: Final = "planned_at"
MOST_RANGES: Final = 80
_BY_RECORD_TIME: Final = (
    "This feed's plan.until is 'window_end': the run lands all records older than the window's end"
    " that are not landed yet, and each record lands under its own window, older ones too. A"
    " window that was landed before is a no-op. A run without an interval takes the newest window"
    " that is over."
)
_BY_RUN: Final = (
    "This feed's plan.until is 'now': the run lands all that is readable now, and the window is"
    " only its label. So a run with an old window puts current records under that window. Use"
    " 'window_end' in the feed file to keep directories by record time."
)

# Airflow checks the schema of each form at each parse: of this draft in half the time.
_DRAFT: Final = {"$schema": "http://json-schema.org/draft-07/schema#"}


def ingest_dag(feed: Feed) -> DAG:
    """The feed's DAG; its runs land under their data interval.

    One run at a time: two would only compete for the same batches. Backfills run beside it, by
    their own limit, and the ledger keeps all of them apart.
    """

    def refuse_wrong_conf(context: Context) -> None:
        with in_airflow_terms():
            require_known_conf(context)
            window_of(feed.name, context)

    with feed_dag(
        INGEST,
        feed,
        words=_words(feed),
        task_defaults={"pre_execute": refuse_wrong_conf},
        schedule=CronDataIntervalTimetable(feed.schedule.cron, timezone=feed.schedule.timezone),
        max_active_runs=1,
        description=f"Lands the topic {feed.source.topic} below {feed.target.root}/{feed.name}",
    ) as dag:
        _tasks(feed)
    # After the tasks: each of them would copy the form, time and again.
    dag.params = form(feed)
    return dag


def form(feed: FeedFile) -> dict[str, Param]:
    """The parameters of an ingest run; a scheduled run leaves them as they are."""
    where = _BY_RUN if feed.plan.until == "now" else _BY_RECORD_TIME
    return {
        "window_start": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Window start",
            **_DRAFT,
            description=(
                f"First instant of the window (included). Empty: the run's own interval. {where}"
            ),
        ),
        "window_end": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Window end",
            **_DRAFT,
            description="End of the window (excluded). Give both instants, or none.",
        ),
        "dry_run": Param(
            False,
            type="boolean",
            title="Dry run",
            **_DRAFT,
            description=(
                "Show on the run's tab Tallystick what would be landed; change nothing. While this"
                " DAG is paused, 'Unpause on trigger' also begins its scheduled run, which lands."
            ),
        ),
    }


def _tasks(feed: Feed) -> None:
    # A story that can go on does: a task that needs only the end of others waits for ALL_DONE, and
    # `check` is the one leaf, which fails the run when any of them has failed. What an earlier run
    # has left to publish holds up no plan, so both begin at once; what storage has refused, `plan`
    # publishes itself. What comes after `check` only tells: Airflow asks no teardown if the run is
    # red.
    finish = FeedTask(task_id=FINISH_TASK, feed=feed, work=finish_batches)
    plan = FeedTask(task_id=PLAN_TASK, feed=feed, work=plan_batches)
    announce = FeedTask(
        task_id=ANNOUNCE_TASK,
        feed=feed,
        work=announce_batches,
        trigger_rule=TriggerRule.ALL_DONE,
        outlets=[asset_of(feed.name)],
    )
    check = FeedTask(
        task_id=CHECK_TASK,
        feed=feed,
        work=check_feed,
        trigger_rule=TriggerRule.ALL_DONE,
    )
    [finish, batch_tasks(feed).expand(batch_id=plan.output)] >> announce >> check
    announce_complete_after(feed, check)
    notify_after(feed, check)


def _words(feed: Feed) -> str:
    source, target, limits = feed.source, feed.target, feed.plan
    is_open = limits.until == "now"
    until = (
        "all that is readable, under the run's window"
        if is_open
        else "records older than the window's end, each under its own window"
    )
    return f"""\
Lands the topic `{source.topic}` ({source.isolation}, from `{source.connection}`) below
`{target.root}/{feed.name}` (`{target.connection}`), exactly once: {until}, at most
{grouped(limits.max_records_per_run)} offsets a run.

| task | what it does |
|---|---|
| finish | publishes what an earlier run committed and did not publish |
| plan | decides what is due, records what was lost, claims the ranges; its log names them |
| batch.land | lets Spark write one batch into its own staging directory |
| batch.commit_and_publish | reads it back from HDFS, accounts for every offset, commits, and \
renames the directory to where readers look |
| announce | tells the asset `tallystick://{feed.name}` what was published, finish included |
| check | compares a sample of each new batch with the broker; clears the staging directories of \
dead attempts; fails when something is lost, doubled or unknown, or when a batch failed |
| announce_complete | tells the asset `tallystick://{feed.name}/complete` of windows that have \
become complete |

A window that was landed before is a no-op, so backfills and manual runs may come in any order, and
twice. **Dry run** in the form of Trigger shows the plan and changes nothing.
"""


def finish_batches(feed: Feed, context: Context) -> None:
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


def plan_batches(feed: Feed, context: Context) -> list[str]:
    """The ids of the run's batches; none in a dry run.

    Without one, Airflow skips the tasks that need one, those of an earlier life of the run too.
    """
    from tallystick.workflows.landing.run import settle_and_plan
    from tallystick.workflows.planning.plan import dry_run
    from tallystick.workflows.planning.plan_report import plan_lines

    with in_airflow_terms(), services_of(feed) as opened:
        services = bounded_by_airflow(opened)
        window = window_of(feed.name, context)
        if is_dry_run(context):
            report = dry_run(services, window, owner_of(context))
            warnings = [(logging.WARNING, each) for each in report.warnings]
            first, *others = plan_lines(report)
            show_dry_run(context, [first, *warnings, *others])
            log.info("A dry run: nothing was changed.")
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


def announce_batches(feed: Feed, context: Context) -> None:
    """Tell the asset what this run has published, for earlier runs too; skipped when that is
    nothing.

    The ledger says it, whichever try of whichever task did it, and died. What the run has planned
    and another one has published is told by both.
    """
    tell_published(feed, context, context["ti"].xcom_pull(task_ids=PLAN_TASK) or ())


def tell_published(feed: Feed, context: Context, planned: Sequence[str]) -> None:
    """The same, for the batches that this run has planned."""
    with in_airflow_terms(), open_ledger() as ledger:
        own = ledger.published_by(FeedName(feed.name), owner_of(context))
        found = [ledger.committed_batch(BatchId(each)) for each in dict.fromkeys([*own, *planned])]
    published = [each.plan for each in found if each and each.state is BatchState.PUBLISHED]
    if not published:
        raise AirflowSkipException("This run has published nothing.")
    extra = landed_extra(published)
    tell_asset(context, feed, asset_of(feed.name), extra)
    log.info(
        "Told %s of %d batches: %s", asset_of(feed.name).uri, extra["batches"], extra["ranges"]
    )


def check_feed(feed: Feed, context: Context) -> None:
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


def asset_of(feed: str) -> Asset:
    """The asset that stands for the feed's landed data."""
    return Asset(f"tallystick://{feed}")


def landed_extra(batches: Sequence[BatchPlan], most_ranges: int = MOST_RANGES) -> dict[str, Any]:
    """Landed ranges by generation and partition, adjacent ones joined, `most_ranges` at most.

    An asset event tells them. It is a notification only: the ledger is the truth.
    """
    by_generation: defaultdict[int, list[OffsetRange]] = defaultdict(list)
    for batch in batches:
        by_generation[batch.ordinal] += [each.offsets for each in batch.ranges]
    ranges = [
        {
            "generation": ordinal,
            "partition": each.partition.partition,
            "from_offset": each.from_offset,
            "until_offset": each.until_offset,
        }
        for ordinal, landed in sorted(by_generation.items())
        for each in union_of(landed)
    ]
    return {
        "batches": len(batches),
        "offsets": sum(batch.span for batch in batches),
        "ranges": ranges[:most_ranges],
        "ranges_left_out": max(0, len(ranges) - most_ranges),
    }
