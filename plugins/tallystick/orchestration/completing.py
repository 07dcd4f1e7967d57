"""The last task of our DAGs: an asset event for a window that has become complete.

A teardown in Airflow's terms, as `notifying.py` says. What was told last is read from Airflow's own
events, so the event and the memory of it are one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from airflow.sdk import Asset

from tallystick.domain.identities import FeedName
from tallystick.orchestration.airflow_releases import AirflowSkipException, newest_events
from tallystick.orchestration.connections import open_ledger
from tallystick.orchestration.failures import in_airflow_terms
from tallystick.orchestration.feed_task import FeedTask
from tallystick.orchestration.run_context import Context, is_dry_run
from tallystick.orchestration.stats import tell_feed
from tallystick.settings.feed import Feed

log = logging.getLogger(__name__)

COMPLETE_TASK: Final = "announce_complete"
_MOST_READ: Final = 50


def complete_asset_of(feed: str) -> Asset:
    """The asset that stands for windows of the feed that are proven to be complete."""
    return Asset(f"tallystick://{feed}/complete")


def announce_complete_after(feed: Feed, last: Any) -> None:
    """Add the task behind the last one of a DAG."""
    asset = complete_asset_of(feed.name)
    (
        last
        >> FeedTask(
            task_id=COMPLETE_TASK,
            feed=feed,
            work=announce_complete,
            inlets=[asset],
            outlets=[asset],
        ).as_teardown()
    )


def announce_complete(feed: Feed, context: Context) -> None:
    """Tell the asset how far windows are complete; skipped where that is no further than before."""
    from tallystick.workflows.reconciling.reporting import feed_completeness

    if is_dry_run(context):
        raise AirflowSkipException("A dry run: nothing is told.")
    with in_airflow_terms(), open_ledger() as ledger:
        tell_feed(ledger, feed.name)
        found = feed_completeness(ledger, FeedName(feed.name))
    asset = complete_asset_of(feed.name)
    before = _told_last(context, asset)
    end, up_to, heard = found.window_end, found.proven.up_to, found.storage_heard_at
    if end is None or up_to is None or (before and end <= before):
        raise AirflowSkipException("No further window is complete.")
    context["outlet_events"][asset].extra = {
        "window_end": end.isoformat(),
        "window_end_before": before.isoformat() if before else None,
        "complete_up_to": up_to.isoformat(),
        "storage_heard_at": heard.isoformat() if heard else None,
        "accepted": [each.finding_id for each in found.accepted],
    }
    log.info("Told %s that every window to %s is complete.", asset.uri, end.isoformat())


def _told_last(context: Context, asset: Asset) -> datetime | None:
    # People may make events of the asset, too, such as by a button of Airflow's page: these say
    # nothing of windows.
    for event in newest_events(context["inlet_events"][asset], _MOST_READ):
        if told := _instant_in(event.extra or {}):
            return told
    return None


def _instant_in(extra: Mapping[str, Any]) -> datetime | None:
    try:
        told = datetime.fromisoformat(str(extra.get("window_end")))
    except ValueError:
        return None
    return told if told.tzinfo else None
