"""The last task of each of our DAGs for a feed with `notify`: tells what is new and what is over.

A teardown in Airflow's terms: it comes after all others, whatever became of them, and the run is as
green or red as they are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tallystick.domain.report.news import News
from tallystick.orchestration.airflow_releases import AirflowException, AirflowSkipException
from tallystick.orchestration.connections import open_ledger
from tallystick.orchestration.failures import in_airflow_terms
from tallystick.orchestration.feed_task import FeedTask
from tallystick.orchestration.page_link import page_of_feed
from tallystick.orchestration.run_context import Context, is_dry_run
from tallystick.settings.feed import Feed, NotifierSettings

log = logging.getLogger(__name__)

NOTIFY_TASK: Final = "notify"


def notify_after(feed: Feed, last: Any) -> None:
    """Add the task behind the last one of a DAG, where the feed's file names a notifier."""
    if feed.notify:
        last >> FeedTask(task_id=NOTIFY_TASK, feed=feed, work=notify).as_teardown()


def notify(feed: Feed, context: Context) -> None:
    """Tell each notifier its news; raises AirflowException at the end if one could not be told."""
    from tallystick.alerts.notifiers import recipient_of
    from tallystick.workflows.telling import tell

    if is_dry_run(context):
        raise AirflowSkipException("A dry run: nobody is told.")
    recipients = {recipient_of(each): _sender(feed, each, context) for each in feed.notify}
    with in_airflow_terms(), open_ledger() as turns, open_ledger() as ledger:
        failures = tell(feed, turns, ledger, recipients)
    for error in failures:
        log.error("A notifier failed: %s", error, exc_info=error)
    if failures:
        raise AirflowException(
            f"Feed {feed.name}: {len(failures)} of {len(recipients)} notifiers could not be told:"
            f" {failures[0]} Nothing of their news is lost: they are told again."
        )


def _sender(feed: Feed, settings: NotifierSettings, context: Context) -> Callable[[News], object]:
    return partial(_send, feed, settings, context)


def _send(feed: Feed, settings: NotifierSettings, context: Context, news: News) -> None:
    from tallystick.alerts.notifiers import notifier_of
    from tallystick.report.news_words import words_of

    words = words_of(feed.name, news, page_of_feed(feed.name))
    # A copy: a notifier adds its own arguments to what it is given.
    notifier_of(settings)({**context, "news": words})
