"""The DAGs that the feeds of a group share: each run is mapped over the feeds there are by then.

1. Who parses the file asks no broker: the first task of a run does, so a topic that is new is
   landed by the next run.
2. One task does for its feed what the tasks of `ingest_<feed>` do, in one process: of 300 feeds
   seven tasks each would do little else than begin. A feed that fails stops no other; one task at
   the end fails for all of them.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from airflow.sdk import DAG, BaseOperator, TriggerRule

from tallystick.orchestration.airflow_releases import (
    AirflowSkipException,
    CronDataIntervalTimetable,
    CronTriggerTimetable,
)
from tallystick.orchestration.batch_tasks import DRIVERS_PER_RUN
from tallystick.orchestration.connections import open_ledger, services_of, topics_of
from tallystick.orchestration.dag_ids import INGEST, JUDGE_TASK, RECONCILE
from tallystick.orchestration.deadline import (
    BETWEEN,
    COMPLETE_TASK,
    WindowCompleteSensor,
    waiting_dag,
)
from tallystick.orchestration.failures import (
    NEVER_AGAIN,
    failed_as_said,
    in_airflow_terms,
)
from tallystick.orchestration.feed_dag import feed_dag, feed_param
from tallystick.orchestration.feed_task import FeedTask
from tallystick.orchestration.ingest import form, tell_published
from tallystick.orchestration.last_tasks import NOTIFY_TASK, alias_of, announce_complete, notify
from tallystick.orchestration.page_link import PageLink
from tallystick.orchestration.reconcile import look
from tallystick.orchestration.run_context import Context, failed_tasks, owner_of, window_of
from tallystick.settings.feed import Feed
from tallystick.settings.feed_group import FeedGroup
from tallystick.settings.feeds import feeds_folder, feeds_of_group
from tallystick.settings.group_names import is_of_group

log = logging.getLogger(__name__)

FEEDS_TASK: Final = "feeds"
_MOST_TOLD: Final = 8
_ONLY: Final = "The name of a feed, to do this for no other one. Empty: for all."
_NAME: Final = "{{ task.feed_name }}"


class FeedsTask(BaseOperator):
    """Gives the names of the group's feeds, over which the tasks after it are mapped."""

    operator_extra_links = (PageLink(),)

    def __init__(
        self, *, group: FeedGroup, feeds_now: Callable[[FeedGroup], list[str]], **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.group = group
        self.feeds_now = feeds_now

    def execute(self, context: Context) -> list[str]:
        """The one that the run's form names, or all."""
        if only := context["params"].get("feed"):
            return [only]
        with in_airflow_terms():
            found = self.feeds_now(self.group)
        if not found:
            log.warning("No topic matches %r: nothing is done.", self.group.source.topics)
        return found


def feeds_on_record(group: FeedGroup) -> list[str]:
    """Those that were planned, and have not been retired."""
    with open_ledger() as ledger:
        heads = ledger.feed_heads(most_runs=0)
    return [each.feed for each in heads if is_of_group(each.feed, group.name)]


def feeds_to_land(group: FeedGroup) -> list[str]:
    """Those, and the topics of now: what is gone, or matches no more, says so where it fails."""
    with open_ledger() as ledger:
        ended = ledger.ended_feeds()
    now = feeds_of_group(feeds_folder(os.environ), group, topics_of(group))
    return sorted({*feeds_on_record(group), *now} - ended.keys())


def shared_ingest_dag(group: FeedGroup) -> DAG:
    """The DAG that lands all feeds of the group."""
    timetable = CronDataIntervalTimetable(group.schedule.cron, timezone=group.schedule.timezone)
    dag = _mapped_dag(INGEST, group, timetable, feeds_to_land, land, pool=group.spark.pool)
    of_window = {name: each for name, each in form(group).items() if name != "dry_run"}
    dag.params = {**of_window, "feed": feed_param(_ONLY)}
    return dag


def shared_reconcile_dag(group: FeedGroup) -> DAG:
    """The DAG that proves them."""
    timetable = CronTriggerTimetable(group.reconcile.cron, timezone=group.schedule.timezone)
    return _mapped_dag(RECONCILE, group, timetable, feeds_on_record, reconcile)


def _mapped_dag(
    kind: str,
    group: FeedGroup,
    timetable: object,
    feeds_now: Callable[[FeedGroup], list[str]],
    work: Callable[[Feed, Context], str | None],
    **limits: Any,
) -> DAG:
    with feed_dag(
        kind,
        group,
        words=_WORDS.format(group=group.name, topics=group.reads),
        schedule=timetable,
        max_active_runs=1,
        description=f"One run for the feeds of all topics like {group.reads}",
    ) as dag:
        feeds = FeedsTask(task_id=FEEDS_TASK, group=group, feeds_now=feeds_now)
        done = FeedTask.partial(
            task_id=work.__name__,
            feed=group,
            work=work,
            outlets=[alias_of(group.name)],
            max_active_tis_per_dagrun=DRIVERS_PER_RUN,
            map_index_template=_NAME,
            **limits,
        ).expand(feed_name=feeds.output)
        JudgeTask(task_id=JUDGE_TASK, told=done.output, trigger_rule=TriggerRule.ALL_DONE)
    dag.params = {"feed": feed_param(_ONLY)}
    return dag


def shared_deadline_dag(group: FeedGroup) -> DAG | None:
    """The DAG that waits for each of them; None without `complete_within`."""
    if group.complete_within is None:
        return None
    with waiting_dag(group) as dag:
        feeds = FeedsTask(task_id=FEEDS_TASK, group=group, feeds_now=feeds_on_record)
        complete = WindowCompleteSensor.partial(
            task_id=COMPLETE_TASK,
            within=group.complete_within,
            poke_interval=BETWEEN,
            map_index_template="{{ task.feed }}",
        ).expand(feed=feeds.output)
        if group.notifiers:
            told = FeedTask.partial(
                task_id=NOTIFY_TASK, feed=group, work=notify, map_index_template=_NAME
            ).expand(feed_name=feeds.output)
            complete >> told.as_teardown()
    return dag


class JudgeTask(BaseOperator):
    """Fails where a feed's task has failed, or has left something to be failed on.

    A task that fails tells no asset of what it has done: so the feeds' own tasks leave it to this.
    """

    template_fields: Sequence[str] = ("told",)
    operator_extra_links = (PageLink(),)

    def __init__(self, *, told: Any, **kwargs: Any) -> None:
        super().__init__(**NEVER_AGAIN, **kwargs)
        self.told = told

    def execute(self, context: Context) -> None:
        """Names all of them, the first ones in full."""
        # By index: at its end Airflow would log an error that nothing follows.
        told = [self.told[number] for number in range(len(self.told))]
        found = [*told, *failed_tasks(context)]
        if found:
            more = f" And {len(found) - _MOST_TOLD} more." if found[_MOST_TOLD:] else ""
            raise failed_as_said(
                " ".join(each if each.endswith(".") else f"{each}." for each in found[:_MOST_TOLD])
                + more,
                "The page of each feed says what is wrong and what ends it. What could be landed"
                " has been; the next run takes up what is left.",
                context,
            )


def land(feed: Feed, context: Context) -> str | None:
    """Do all that is due for one feed; what is to fail on is given to `judge`.

    Raises what may pass, while there is a try left: the next one lands what is left, nothing twice.
    """
    from tallystick.workflows.landing import checking
    from tallystick.workflows.landing.run import land_feed

    ti = context["ti"]
    with _telling_at_the_end(feed, context):
        with in_airflow_terms(), services_of(feed) as services:
            report = land_feed(services, window_of(feed.name, context), owner_of(context))
            for error in report.errors:
                if error.retry and ti.try_number <= ti.max_tries:
                    raise error
            failure = checking.failure(feed.name, report.findings, report.on_record)
        try:
            tell_published(feed, context, [each.batch_id for each in report.plan.all_batches])
        except AirflowSkipException as nothing:
            log.info("%s", nothing)
    if failure:
        return failure.describe()
    return f"Feed {feed.name}: {report.errors[0]}" if report.errors else None


def reconcile(feed: Feed, context: Context) -> str | None:
    """Prove one feed; what is to fail on is left to `judge`."""
    with _telling_at_the_end(feed, context):
        _, failure = look(feed, context)
    return failure.describe() if failure else None


@contextmanager
def _telling_at_the_end(feed: Feed, context: Context) -> Iterator[None]:
    """Tell of complete windows and of news, whatever became of the block."""
    try:
        yield
    except Exception:
        _tell(feed, context)
        raise
    for error in _tell(feed, context):
        raise error


def _tell(feed: Feed, context: Context) -> list[Exception]:
    failed: list[Exception] = []
    for tell in (announce_complete, *((notify,) if feed.notifiers else ())):
        try:
            tell(feed, context)
        except AirflowSkipException as nothing:
            log.info("%s", nothing)
        except Exception as error:  # noqa: BLE001 - whatever a notifier raises, the others are told
            log.error("Not told: %s", error)
            failed.append(error)
    return failed


_WORDS: Final = """\
One run for all feeds of `{group}`: each topic like `{topics}` is a feed of its own, and new ones
are found by the task `feeds` of each ingest. Each feed is one index of the mapped tasks; one that
fails stops no other. Feeds on record stay until `tallystick feed retire` ends them.
"""
