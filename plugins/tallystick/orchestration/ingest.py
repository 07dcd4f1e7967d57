"""The DAG `ingest_<feed>`: plan, per batch land, then commit and publish; announce; check."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from airflow.sdk import DAG, Param, TriggerRule

from tallystick.orchestration import ingest_tasks
from tallystick.orchestration.airflow_releases import BACKOFF_BY_TWO, CronDataIntervalTimetable
from tallystick.orchestration.announcement import asset_of
from tallystick.orchestration.batch_tasks import batch_tasks
from tallystick.orchestration.completing import announce_complete_after
from tallystick.orchestration.dag_ids import INGEST, TAG, dag_id_of
from tallystick.orchestration.failures import in_airflow_terms
from tallystick.orchestration.feed_task import FeedTask
from tallystick.orchestration.notifying import notify_after
from tallystick.orchestration.run_context import Context, require_known_conf, window_of
from tallystick.settings.feed import Feed

OWNER: Final = "tallystick"
_BY_RECORD_TIME: Final = (
    "This feed's plan.until is 'window_end': the run lands all records older than the window's end"
    " that are not landed yet, and each record lands under its own window, older ones too. A"
    " window that was landed before is a no-op."
)
_BY_RUN: Final = (
    "This feed's plan.until is 'now': the run lands all that is readable now, and the window is"
    " only its label. So a run with an old window puts current records under that window. Use"
    " 'window_end' in the feed file to keep directories by record time."
)

# Airflow checks the schema of each form at each parse: of this draft in half the time.
_DRAFT: Final = {"$schema": "http://json-schema.org/draft-07/schema#"}


def _refuse_unknown_conf(context: Context) -> None:
    with in_airflow_terms():
        require_known_conf(context)


# Errors that no retry can mend fail at once, so retries are for what passes: a broker that
# restarts. The configuration is asked before each task, because some run after others have failed.
TASK_DEFAULTS: Final[dict[str, Any]] = {
    "owner": OWNER,
    "pre_execute": _refuse_unknown_conf,
    "retries": 2,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": BACKOFF_BY_TWO,
    "max_retry_delay": timedelta(minutes=10),
}


def ingest_dag(feed: Feed) -> DAG:
    """The feed's DAG; its runs land under their data interval.

    One run at a time: two would only compete for the same batches. Backfills run beside it, by
    their own limit, and the ledger keeps all of them apart.
    """

    def refuse_wrong_conf(context: Context) -> None:
        with in_airflow_terms():
            require_known_conf(context)
            window_of(feed.name, context)

    with DAG(
        dag_id=dag_id_of(INGEST, feed.name),
        schedule=CronDataIntervalTimetable(feed.schedule.cron, timezone=feed.schedule.timezone),
        start_date=feed.schedule.start_date,
        catchup=False,
        max_active_runs=1,
        default_args=TASK_DEFAULTS | {"pre_execute": refuse_wrong_conf},
        tags=[TAG, "ingest"],
        description=f"Lands the topic {feed.source.topic} below {feed.target.root}/{feed.name}",
        doc_md=_words(feed),
    ) as dag:
        _tasks(feed)
    # After the tasks: each of them would copy the form, time and again.
    dag.params = form(feed)
    return dag


def form(feed: Feed) -> dict[str, Param]:
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
            description="Show on the run's tab Tallystick what would be landed; change nothing.",
        ),
    }


def _tasks(feed: Feed) -> None:
    # A story that can go on does: a task that needs only the end of others waits for ALL_DONE, and
    # `check` is the one leaf, which fails the run when any of them has failed. What an earlier run
    # has left to publish holds up no plan, so both begin at once; what storage has refused, `plan`
    # publishes itself. What comes after `check` only tells: Airflow asks no teardown if the run is
    # red.
    finish = FeedTask(task_id=ingest_tasks.FINISH_TASK, feed=feed, work=ingest_tasks.finish)
    plan = FeedTask(task_id=ingest_tasks.PLAN_TASK, feed=feed, work=ingest_tasks.plan)
    announce = FeedTask(
        task_id=ingest_tasks.ANNOUNCE_TASK,
        feed=feed,
        work=ingest_tasks.announce,
        trigger_rule=TriggerRule.ALL_DONE,
        outlets=[asset_of(feed.name)],
    )
    check = FeedTask(
        task_id=ingest_tasks.CHECK_TASK,
        feed=feed,
        work=ingest_tasks.check,
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
{limits.max_records_per_run:,} offsets a run.

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
