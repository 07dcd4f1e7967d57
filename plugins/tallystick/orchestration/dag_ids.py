"""The ids of our DAGs: a kind, an underscore, a feed or a group; whose an id is; their tag."""

from __future__ import annotations

from typing import Final

from tallystick.domain.identities import FeedName
from tallystick.settings.group_names import group_of

INGEST: Final = "ingest"
RECONCILE: Final = "reconcile"
REPAIR: Final = "repair"
DEADLINE: Final = "deadline"
KINDS: Final = (INGEST, RECONCILE, REPAIR, DEADLINE)
SCHEDULED: Final = (INGEST, RECONCILE, DEADLINE)
"""A repair is begun by hand."""
CHECK_TASK: Final = "check"
JUDGE_TASK: Final = "judge"
FAILS_ON_FINDINGS: Final = {INGEST: CHECK_TASK, RECONCILE: JUDGE_TASK}
"""The task of a run that is red because of what was found, while all others are not."""
TAG: Final = "tallystick"
"""In Airflow all of them bear it: others may have an id like ours."""


def dag_id_of(kind: str, feed: str) -> str:
    """The id of the feed's DAG of this kind; feeds of a group share theirs.

    >>> dag_id_of(INGEST, "orders"), dag_id_of(INGEST, "events--a")
    ('ingest_orders', 'ingest_events')
    """
    return f"{kind}_{group_of(feed)}"


def feed_of(dag_id: str) -> FeedName | None:
    """The feed, or the group, that the id would be of; None for an id that is none of ours.

    >>> feed_of("reconcile_web_orders"), feed_of("after_orders")
    ('web_orders', None)
    """
    kind, _, feed = dag_id.partition("_")
    return FeedName(feed) if kind in KINDS and feed else None
