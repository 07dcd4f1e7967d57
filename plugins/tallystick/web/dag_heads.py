"""Our DAGs as Airflow has them on record: one look at its database tells it of all feeds.

The scheduler keeps beside each DAG when it starts next, and a DAG that no file has any more stays
on record as stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from airflow.models.dag import DagModel, DagTag
from airflow.models.dagrun import DagRun
from airflow.utils.session import create_session
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import String, and_, cast, false, func, or_

from tallystick.domain.identities import FeedName
from tallystick.orchestration.dag_ids import (
    FAILS_ON_FINDINGS,
    SCHEDULED,
    TAG,
    dag_id_of,
    feed_of,
)
from tallystick.settings.group_names import group_of
from tallystick.web.answers import FailedTry
from tallystick.web.failed_tries import failed_tries

_ENDS_WITHIN: Final = timedelta(days=1)
"""Whatever takes a run longer, somebody should look at it."""


@dataclass(frozen=True, slots=True)
class DagHead:
    """One of a feed's DAGs that have a schedule."""

    dag_id: str
    is_paused: bool
    is_stale: bool
    """True once no DAG file has it any more."""
    parsed_at: datetime | None
    next_at: datetime | None
    """None where it is paused, begins after others only, or waits for a run to end."""
    failing_since: datetime | None = None
    """When the first of those runs was due that have failed, or have not ended in a day, and that
    no green one has followed. Dry runs count for nothing, and so does a newest one that failed on
    its findings alone: these tell it, as long as they stand."""
    failed_run: str | None = None
    """The newest of these."""
    is_stuck: bool = False
    """True where that one has not ended."""
    sentence: str | None = None
    """With which its first task has failed, of those that have left one."""

    @property
    def kind(self) -> str:
        """What it does for its feed."""
        return self.dag_id.partition("_")[0]


DagHeads = Mapping[FeedName, Mapping[str, DagHead]]
"""By feed or group, and kind."""


def heads_of(dags: DagHeads, feed: str) -> Mapping[str, DagHead]:
    """The feed's DAGs by kind, which are its group's where it has one."""
    return dags.get(FeedName(group_of(feed)), {})


async def dag_heads(feed: FeedName | None = None) -> DagHeads:
    """All of them, or those of a feed; those that are stale, too."""
    return await run_in_threadpool(_dag_heads, feed)


def _dag_heads(only: FeedName | None = None) -> DagHeads:
    found: dict[FeedName, dict[str, DagHead]] = {}
    with create_session() as session:
        asked = (
            session.query(
                DagModel.dag_id,
                DagModel.is_paused,
                DagModel.is_stale,
                DagModel.last_parsed_time,
                DagModel.next_dagrun_create_after,
                # Airflow 3.1 has no such column, and keeps no next run meanwhile.
                getattr(DagModel, "exceeds_max_non_backfill", false()),
            )
            .join(DagTag, DagTag.dag_id == DagModel.dag_id)
            .filter(DagTag.name == TAG)
            .order_by(DagModel.dag_id)
        )
        if only:
            asked = asked.filter(DagModel.dag_id.in_([dag_id_of(kind, only) for kind in SCHEDULED]))
        known = asked.all()
        failing = _failing(session, [each.dag_id for each in known])
    for dag_id, is_paused, is_stale, parsed_at, next_at, must_wait in known:
        feed = feed_of(dag_id)
        head = DagHead(
            dag_id,
            is_paused,
            is_stale,
            parsed_at,
            None if is_paused or must_wait else next_at,
            *failing.get(dag_id, ()),
        )
        if feed and head.kind in SCHEDULED:
            found.setdefault(feed, {})[head.kind] = head
    return found


def _failing(
    session: Any, dag_ids: Sequence[str]
) -> Mapping[str, tuple[datetime, str, bool, str | None]]:
    """By DAG, what a head says of its runs; one row for each DAG, however many runs it had."""
    said = func.coalesce(cast(DagRun.conf["dry_run"].as_string(), String(8)), "")
    ours = (DagRun.dag_id.in_(dag_ids), said.not_in(["true", "1"]))
    green = (
        session.query(DagRun.dag_id, func.max(DagRun.run_after).label("at"))
        .filter(*ours, DagRun.state == "success")
        .group_by(DagRun.dag_id)
        .subquery()
    )
    begun_at = func.coalesce(DagRun.start_date, DagRun.queued_at, DagRun.run_after)
    is_stuck = and_(DagRun.state != "success", begun_at < datetime.now(UTC) - _ENDS_WITHIN)
    failed = (
        session.query(func.min(DagRun.run_after).label("since"), func.max(DagRun.id).label("id"))
        .outerjoin(green, green.c.dag_id == DagRun.dag_id)
        .filter(*ours, or_(DagRun.state == "failed", is_stuck))
        .filter(or_(green.c.at.is_(None), DagRun.run_after > green.c.at))
        .group_by(DagRun.dag_id)
        .subquery()
    )
    newest = session.query(DagRun.dag_id, failed.c.since, DagRun.run_id, DagRun.state)
    found = newest.join(failed, failed.c.id == DagRun.id).all()
    tries = failed_tries(session, [(dag_id, run_id) for dag_id, _, run_id, _ in found])
    return {
        dag_id: (
            since,
            run_id,
            state != "failed",
            next((each.sentence for each in failed if each.sentence), None),
        )
        for dag_id, since, run_id, state in found
        if not _is_of_findings(dag_id, failed := tries.get((dag_id, run_id), ()))
    }


def _is_of_findings(dag_id: str, tries: Sequence[FailedTry]) -> bool:
    """True for a run of which only that task has failed which fails on what was found."""
    failed = {each.task_id for each in tries if not each.is_tried_again}
    return failed == {FAILS_ON_FINDINGS.get(dag_id.partition("_")[0])}
