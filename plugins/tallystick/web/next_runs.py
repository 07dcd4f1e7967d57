"""When Airflow starts the DAGs of a feed next, by Airflow's own record of them.

The scheduler keeps that instant beside each DAG: one query tells it of all feeds.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow.models.dag import DagModel
from airflow.utils.session import create_session
from fastapi.concurrency import run_in_threadpool

from tallystick.orchestration.dag_ids import INGEST, RECONCILE, dag_id_of
from tallystick.web.answers import FeedAnswer, NextRunPart


async def with_next_runs(feeds: Sequence[FeedAnswer]) -> list[FeedAnswer]:
    """The same feeds, each with the next run of its DAGs that Airflow knows and has a time for."""
    ids = [dag_id_of(kind, each.feed) for each in feeds for kind in (INGEST, RECONCILE)]
    known = await run_in_threadpool(_next_runs, ids)
    return [
        each.model_copy(
            update={
                "next_runs": [
                    known[dag_id]
                    for kind in (INGEST, RECONCILE)
                    if (dag_id := dag_id_of(kind, each.feed)) in known
                ]
            }
        )
        for each in feeds
    ]


def _next_runs(dag_ids: Sequence[str]) -> dict[str, NextRunPart]:
    with create_session() as session:
        known = session.query(
            DagModel.dag_id, DagModel.next_dagrun_create_after, DagModel.is_paused
        ).filter(DagModel.dag_id.in_(dag_ids), ~DagModel.is_stale)
        return {
            dag_id: NextRunPart(dag_id=dag_id, at=None if is_paused else at, is_paused=is_paused)
            for dag_id, at, is_paused in known
        }
