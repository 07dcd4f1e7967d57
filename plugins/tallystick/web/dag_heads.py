"""Our DAGs as Airflow has them on record: one look at its database tells it of all feeds.

The scheduler keeps beside each DAG when it starts next, and a DAG that no file has any more stays
on record as stale.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from airflow.models.dag import DagModel, DagTag
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import func, or_

from tallystick.domain.identities import FeedName
from tallystick.orchestration.dag_ids import SCHEDULED, TAG, feed_of

_LOOKS_BACK: Final = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class DagHead:
    """One of a feed's DAGs that have a schedule."""

    dag_id: str
    is_paused: bool
    is_stale: bool
    """True once no DAG file has it any more."""
    parsed_at: datetime
    next_at: datetime | None
    """None where it is paused, or begins after others only."""
    failing_since: datetime | None = None
    """When the first of those failed runs was due that no green one has followed."""
    failed_run: str | None = None
    """The newest of these."""

    @property
    def kind(self) -> str:
        """What it does for its feed."""
        return self.dag_id.partition("_")[0]


DagHeads = Mapping[FeedName, Mapping[str, DagHead]]
"""By feed and kind."""


async def dag_heads() -> DagHeads:
    """All of them, those that are stale too."""
    return await run_in_threadpool(_dag_heads)


def _dag_heads() -> DagHeads:
    found: dict[FeedName, dict[str, DagHead]] = {}
    with create_session() as session:
        known = (
            session.query(
                DagModel.dag_id,
                DagModel.is_paused,
                DagModel.is_stale,
                DagModel.last_parsed_time,
                DagModel.next_dagrun_create_after,
            )
            .join(DagTag, DagTag.dag_id == DagModel.dag_id)
            .filter(DagTag.name == TAG)
            .order_by(DagModel.dag_id)
            .all()
        )
        failing: dict[str, tuple[datetime, str]] = {}
        since = datetime.now(UTC) - _LOOKS_BACK
        green = (
            session.query(DagRun.dag_id, func.max(DagRun.run_after).label("at"))
            .filter(DagRun.state == "success", DagRun.run_after > since)
            .group_by(DagRun.dag_id)
            .subquery()
        )
        failed = (
            session.query(DagRun.dag_id, DagRun.run_after, DagRun.run_id)
            .outerjoin(green, green.c.dag_id == DagRun.dag_id)
            .filter(DagRun.dag_id.in_([each.dag_id for each in known]))
            .filter(DagRun.state == "failed", DagRun.run_after > since)
            .filter(or_(green.c.at.is_(None), DagRun.run_after > green.c.at))
            .order_by(DagRun.run_after)
        )
        for dag_id, due_at, run_id in failed:
            failing[dag_id] = (failing.get(dag_id, (due_at,))[0], run_id)
    for dag_id, is_paused, is_stale, parsed_at, next_at in known:
        feed = feed_of(dag_id)
        head = DagHead(
            dag_id,
            is_paused,
            is_stale,
            parsed_at,
            None if is_paused else next_at,
            *failing.get(dag_id, ()),
        )
        if feed and head.kind in SCHEDULED:
            found.setdefault(feed, {})[head.kind] = head
    return found
