"""From a folder of feed files to Airflow's DAGs, and to the error that shows what is wrong in it.

A broken file takes away its own feed's DAGs and no other's. It is shown by a DAG file of its own:
Airflow knows one import error per DAG file, and a file that raises has no DAGs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from airflow.sdk import DAG

from tallystick.errors import FeedFileInvalid
from tallystick.orchestration.dag_ids import INGEST, RECONCILE, REPAIR
from tallystick.orchestration.ingest import ingest_dag
from tallystick.orchestration.reconcile import reconcile_dag
from tallystick.orchestration.repair import repair_dag
from tallystick.settings.feed import Feed
from tallystick.settings.feeds import feed_as_written, read_feeds

_KINDS: Final[Mapping[str, Callable[[Feed], DAG]]] = {
    INGEST: ingest_dag,
    RECONCILE: reconcile_dag,
    REPAIR: repair_dag,
}


def build_dags(folder: Path, dag_id: str | None) -> dict[str, DAG]:
    """The DAGs of every feed whose file is right, by id; in a task, its own DAG alone: `dag_id`.

    A task is told its own DAG's id, so it reads one feed file, however many there are. Raises
    ConfigurationError if there is no such folder, and in a task what is wrong with its feed's file.
    """
    if dag_id:
        kind, _, name = dag_id.partition("_")
        return {dag_id: _KINDS[kind](feed_as_written(folder, name))}
    dags = (build(feed) for feed in read_feeds(folder).feeds.values() for build in _KINDS.values())
    return {dag.dag_id: dag for dag in dags}


def require_valid(folder: Path) -> None:
    """Raise FeedFileInvalid with every problem of every file: file, line, key, what is accepted."""
    problems = read_feeds(folder).problems
    if problems:
        raise FeedFileInvalid([str(each) for each in problems])
