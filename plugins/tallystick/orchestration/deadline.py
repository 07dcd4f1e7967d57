"""The DAG `deadline_<feed>`: fails, and lets people be told, when a window is not complete in time.

A DAG of its own: it does so, too, when ingest and reconcile stand still or are paused.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from airflow.sdk import DAG

from tallystick.orchestration.airflow_releases import CronDataIntervalTimetable
from tallystick.orchestration.complete_sensor import FeedCompleteSensor
from tallystick.orchestration.dag_ids import DEADLINE
from tallystick.orchestration.feed_dag import feed_dag
from tallystick.orchestration.last_tasks import notify_after
from tallystick.orchestration.page_link import PageLink
from tallystick.settings.feed import Feed, FeedFile

COMPLETE_TASK: Final = "complete"
# As many windows can be waited for at once: a deferred task holds no slot.
_MOST_WINDOWS: Final = 1000
BETWEEN: Final = timedelta(minutes=1)


class WindowCompleteSensor(FeedCompleteSensor):
    """The sensor with a link to the page, as all tasks of ours have."""

    operator_extra_links = (PageLink(),)


def deadline_dag(feed: Feed) -> DAG | None:
    """A run for each window, from its end on; None for a feed without `complete_within`."""
    if feed.complete_within is None:
        return None
    with waiting_dag(feed) as dag:
        complete = WindowCompleteSensor(
            task_id=COMPLETE_TASK,
            feed=feed.name,
            within=feed.complete_within,
            poke_interval=BETWEEN,
        )
        notify_after(feed, complete)
    return dag


def waiting_dag(feed: FeedFile) -> DAG:
    """The DAG of a feed or a group, without tasks."""
    return feed_dag(
        DEADLINE,
        feed,
        words=_WORDS.format(feed=feed.name, within=feed.complete_within),
        schedule=CronDataIntervalTimetable(feed.schedule.cron, timezone=feed.schedule.timezone),
        description=f"Fails when a window of {feed.reads} is not complete in time",
        max_active_runs=_MOST_WINDOWS,
    )


_WORDS: Final = """\
Waits from the end of each window of `{feed}` until everything before it is proven to be landed. The
run fails when that takes longer than {within} (`complete_within`); then the notifiers of the feed
are told. It asks the ledger only. `ingest_{feed}` lands, `reconcile_{feed}` proves.
"""
