"""The last tasks of our DAGs: they tell of windows that have become complete, and of news.

Teardowns in Airflow's terms: they come after all others, whatever became of them, and the run is as
green or red as those are.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Any, Final

from airflow.sdk import Asset, AssetAlias

from tallystick.domain.identities import FeedName
from tallystick.domain.report.news import News
from tallystick.orchestration.airflow_releases import (
    AirflowException,
    AirflowSkipException,
    newest_events,
)
from tallystick.orchestration.connections import open_ledger
from tallystick.orchestration.failures import in_airflow_terms
from tallystick.orchestration.feed_task import FeedTask
from tallystick.orchestration.page_link import our_pages
from tallystick.orchestration.run_context import Context, is_dry_run
from tallystick.orchestration.stats import tell_feed
from tallystick.settings.feed import Feed, NotifierSettings
from tallystick.settings.feed_group import FeedGroup
from tallystick.settings.group_names import group_of

log = logging.getLogger(__name__)

COMPLETE_TASK: Final = "announce_complete"
NOTIFY_TASK: Final = "notify"
_MOST_READ: Final = 50


def complete_asset_of(feed: str) -> Asset:
    """The asset that stands for windows of the feed that are proven to be complete."""
    return Asset(f"tallystick://{feed}/complete")


def tell_asset(context: Context, feed: Feed, asset: Asset, extra: dict[str, Any]) -> None:
    """Add an event of the asset; a group's feeds are not known before, so it is by an alias."""
    events, group = context["outlet_events"], group_of(feed.name)
    if group == feed.name:
        events[asset].extra = extra
    else:
        events[alias_of(group)].add(asset, extra=extra)


def alias_of(group: str) -> AssetAlias:
    """Stands for all assets of the group's feeds, each of which has those of any feed."""
    return AssetAlias(f"tallystick://{group}")


def announce_complete_after(feed: Feed | FeedGroup, last: Any) -> None:
    """Add the task behind the last one of a DAG."""
    asset = complete_asset_of(feed.name)
    is_group = isinstance(feed, FeedGroup)
    (
        last
        >> FeedTask(
            task_id=COMPLETE_TASK,
            feed=feed,
            work=announce_complete,
            inlets=[] if is_group else [asset],
            outlets=[alias_of(feed.name) if is_group else asset],
        ).as_teardown()
    )


def announce_complete(feed: Feed, context: Context) -> None:
    """Tell the asset how far windows are complete; skipped where that is no further than before.

    What was told last is read from Airflow's own events, so event and memory of it are one.
    """
    from tallystick.workflows.reconciling.reporting import tell_complete

    if is_dry_run(context):
        raise AirflowSkipException("A dry run: nothing is told.")
    asset = complete_asset_of(feed.name)
    before = _told_last(context, asset)
    with in_airflow_terms(), open_ledger() as ledger:
        found = tell_complete(ledger, FeedName(feed.name), before)
        tell_feed(ledger, feed.name)
    end, up_to, heard = found.window_end, found.proven.up_to, found.storage_heard_at
    if end is None or up_to is None or (before and end <= before):
        raise AirflowSkipException("No further window is complete.")
    extra = {
        "window_end": end.isoformat(),
        "window_end_before": before.isoformat() if before else None,
        "complete_up_to": up_to.isoformat(),
        "storage_heard_at": heard.isoformat() if heard else None,
        "late_rows": found.late.rows if found.late else 0,
        "accepted": [each.finding_id for each in found.accepted],
    }
    tell_asset(context, feed, asset, extra)
    log.info("Told %s that every window to %s is complete.", asset.uri, end.isoformat())


def _told_last(context: Context, asset: Asset) -> datetime | None:
    # People may make events of the asset, too, such as by a button of Airflow's page: these say
    # nothing of windows.
    inlets = context["inlet_events"]
    if asset not in list(inlets):  # of a group's feed: no task knows it before
        inlets = type(inlets)([asset])
    for event in newest_events(inlets[asset], _MOST_READ):
        if told := _instant_in(event.extra or {}):
            return told
    return None


def _instant_in(extra: Mapping[str, Any]) -> datetime | None:
    try:
        told = datetime.fromisoformat(str(extra.get("window_end")))
    except ValueError:
        return None
    return told if told.tzinfo else None


def notify_after(feed: Feed | FeedGroup, last: Any) -> None:
    """Add the task behind the last one of a DAG, where the feed has a notifier."""
    if feed.notifiers:
        last >> FeedTask(task_id=NOTIFY_TASK, feed=feed, work=notify).as_teardown()


def notify(feed: Feed, context: Context) -> None:
    """Tell each notifier its news; raises AirflowException at the end if one could not be told."""
    from tallystick.alerts.notifiers import recipient_of, wish_of
    from tallystick.workflows.telling import Recipient, tell

    if is_dry_run(context):
        raise AirflowSkipException("A dry run: nobody is told.")
    recipients = {
        recipient_of(each): Recipient(partial(_send, feed, each, context), wish_of(each))
        for each in feed.notifiers
    }
    with in_airflow_terms(), open_ledger() as turns, open_ledger() as ledger:
        failures = tell(feed, turns, ledger, recipients)
    for error in failures:
        log.error("A notifier failed: %s", error, exc_info=error)
    if failures:
        raise AirflowException(
            f"Feed {feed.name}: {len(failures)} of {len(recipients)} notifiers could not be told:"
            f" {failures[0]} Nothing of their news is lost: they are told again."
        )


def _send(feed: Feed, settings: NotifierSettings, context: Context, news: News) -> None:
    from tallystick.alerts.notifiers import notifier_of
    from tallystick.report.news_words import words_of

    words = words_of(feed.name, news, our_pages(), feed.labels)
    # A copy: a notifier adds its own arguments to what it is given.
    notifier_of(settings)({**context, "news": words})
