"""Airflow's own record of the DAGs says which are ours, and when each starts next.

The scheduler keeps that instant beside each DAG: one query tells it of all feeds.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow.models.dag import DagModel, DagTag
from airflow.utils.session import create_session
from fastapi.concurrency import run_in_threadpool

from tallystick.orchestration.dag_ids import SCHEDULED, TAG, dag_id_of
from tallystick.web.answers import FeedAnswer, NextRunPart


async def with_next_runs(feeds: Sequence[FeedAnswer]) -> list[FeedAnswer]:
    """The same feeds, each with the next run of its DAGs that Airflow knows and has a time for."""
    ids = [dag_id_of(kind, each.feed) for each in feeds for kind in SCHEDULED]
    known = await run_in_threadpool(_next_runs, ids)
    return [
        each.model_copy(
            update={
                "next_runs": [
                    known[dag_id]
                    for kind in SCHEDULED
                    if (dag_id := dag_id_of(kind, each.feed)) in known
                ]
            }
        )
        for each in feeds
    ]


async def is_ours(dag_id: str) -> bool:
    """True for a DAG of a feed, and not for one of another kind whose id begins alike."""
    return await run_in_threadpool(_has_tag, dag_id)


def _has_tag(dag_id: str) -> bool:
    with create_session() as session:
        return session.get(DagTag, (TAG, dag_id)) is not None


def _next_runs(dag_ids: Sequence[str]) -> dict[str, NextRunPart]:
    with create_session() as session:
        known = session.query(
            DagModel.dag_id, DagModel.next_dagrun_create_after, DagModel.is_paused
        ).filter(DagModel.dag_id.in_(dag_ids), ~DagModel.is_stale)
        return {
            dag_id: NextRunPart(dag_id=dag_id, at=None if is_paused else at, is_paused=is_paused)
            for dag_id, at, is_paused in known
        }
