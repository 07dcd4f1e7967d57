"""Makes Airflow's DAGs of a folder of feed files, and the error that shows what is wrong in it.

A broken file takes away its own feed's DAGs and no other's. It is shown by a DAG file of its own:
Airflow knows one import error per DAG file, and a file that raises has no DAGs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from airflow.sdk import DAG, get_parsing_context

from tallystick.alerts.notifiers import notifier_problems
from tallystick.errors import FeedFileInvalid
from tallystick.orchestration.dag_ids import DEADLINE, INGEST, RECONCILE, REPAIR
from tallystick.orchestration.deadline import deadline_dag
from tallystick.orchestration.ingest import ingest_dag
from tallystick.orchestration.reconcile import reconcile_dag
from tallystick.orchestration.repair import repair_dag
from tallystick.orchestration.shared import (
    shared_deadline_dag,
    shared_ingest_dag,
    shared_reconcile_dag,
)
from tallystick.settings.feed import Feed
from tallystick.settings.feed_group import FeedGroup
from tallystick.settings.feeds import feeds_folder, file_as_written, read_feeds

_KINDS: Final[Mapping[str, Callable[[Feed], DAG | None]]] = {
    INGEST: ingest_dag,
    RECONCILE: reconcile_dag,
    REPAIR: repair_dag,
    DEADLINE: deadline_dag,
}
_KINDS_OF_GROUP: Final[Mapping[str, Callable[[FeedGroup], DAG | None]]] = {
    INGEST: shared_ingest_dag,
    RECONCILE: shared_reconcile_dag,
    REPAIR: repair_dag,
    DEADLINE: shared_deadline_dag,
}


def airflow_dags() -> dict[str, DAG]:
    """Returns what a DAG file puts into `globals()`: the DAGs of the feeds in the folder that
    TALLYSTICK_FEEDS names. Raises as `build_dags`.
    """
    return build_dags(feeds_folder(os.environ), get_parsing_context().dag_id)


def airflow_dag_problems() -> None:
    """Fail a DAG file without DAGs by what is wrong in that folder; raises as `require_valid`."""
    require_valid(feeds_folder(os.environ))


def build_dags(folder: Path, dag_id: str | None) -> dict[str, DAG]:
    """The DAGs of every feed whose file is right, by id; in a task, its own DAG alone: `dag_id`.

    A task is told its own DAG's id, so it reads one feed file, however many there are. No broker is
    asked: a group's DAGs ask for its feeds in each run. Raises ConfigurationError if there is no
    such folder, and in a task what is wrong with its feed's file.
    """
    if dag_id:
        kind, _, name = dag_id.partition("_")
        dags = _dags_of(file_as_written(folder, name), kind)
    else:
        found = read_feeds(folder, notifier_problems)
        files: list[Feed | FeedGroup] = [*found.feeds.values(), *found.groups.values()]
        dags = [dag for each in files for kind in _KINDS for dag in _dags_of(each, kind)]
    return {dag.dag_id: dag for dag in dags}


def _dags_of(file: Feed | FeedGroup, kind: str) -> list[DAG]:
    """The DAG of this kind, where the file wants one."""
    dag = _KINDS_OF_GROUP[kind](file) if isinstance(file, FeedGroup) else _KINDS[kind](file)
    return [dag] if dag else []


def require_valid(folder: Path) -> None:
    """Raise FeedFileInvalid with every problem of every file: file, line, key, what is accepted."""
    problems = read_feeds(folder, notifier_problems).problems
    if problems:
        raise FeedFileInvalid([str(each) for each in problems])
