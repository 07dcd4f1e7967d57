"""Tries that have failed, of the tasks of some runs, each with the sentence that it has left.

Airflow drops the sentence when the task starts again, and a task that was killed leaves none: then
its log is all there is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from airflow.models.taskinstance import TaskInstance
from airflow.models.taskinstancehistory import TaskInstanceHistory
from airflow.models.xcom import XComModel
from airflow.utils.session import create_session
from sqlalchemy import tuple_

from tallystick.orchestration.run_context import FAILED_AS
from tallystick.web.answers import FailedTry

Run = tuple[str, str]
"""The DAG's id and the run's."""
_FAILED: Final = ("failed", "up_for_retry")


def failed_tries(session: Any, runs: Collection[Run]) -> Mapping[Run, Sequence[FailedTry]]:
    """By run, in the order in which they ended: what failed first is rarely a consequence.

    What has been tried again since, and has no sentence any more, comes last.
    """
    if not runs:
        return {}
    said = {
        tuple(place): value["sentence"]
        for *place, value in session.query(
            XComModel.dag_id,
            XComModel.run_id,
            XComModel.task_id,
            XComModel.map_index,
            XComModel.value,
        ).filter(XComModel.key == FAILED_AS, tuple_(XComModel.dag_id, XComModel.run_id).in_(runs))
        if isinstance(value, dict) and isinstance(value.get("sentence"), str)
    }
    found: dict[tuple[Run, str, int, int], tuple[datetime | None, FailedTry]] = {}
    # The newest try of a task is read last: what it says of itself counts.
    for table in (TaskInstanceHistory, TaskInstance):
        for dag_id, run_id, task_id, index, number, state, ended_at in session.query(
            table.dag_id,
            table.run_id,
            table.task_id,
            table.map_index,
            table.try_number,
            table.state,
            table.end_date,
        ).filter(table.state.in_(_FAILED), tuple_(table.dag_id, table.run_id).in_(runs)):
            run = (dag_id, run_id)
            is_newest = table is TaskInstance
            sentence = said.get((*run, task_id, index)) if is_newest else None
            told = FailedTry(
                task_id=task_id,
                map_index=index if index >= 0 else None,
                try_number=number,
                is_tried_again=not is_newest or state != "failed",
                sentence=sentence,
            )
            found[run, task_id, index, number] = (ended_at, told)
    by_run: dict[Run, list[FailedTry]] = {}
    for (run, *_), (_, told) in sorted(found.items(), key=lambda each: _order(*each[1])):
        by_run.setdefault(run, []).append(told)
    return by_run


def _order(ended_at: datetime | None, told: FailedTry) -> tuple[bool, float]:
    is_history = told.is_tried_again and told.sentence is None
    return is_history, ended_at.timestamp() if ended_at else 0.0


def tries_of_run(dag_id: str, run_id: str) -> Sequence[FailedTry]:
    """Of one run."""
    with create_session() as session:
        return failed_tries(session, [(dag_id, run_id)]).get((dag_id, run_id), ())
