"""From a folder of feed files to Airflow's DAGs, and to the error that shows what is wrong in it.

A broken file takes away its own feed's DAGs and no other's. It is shown by a DAG file of its own:
Airflow knows one import error per DAG file, and a file that raises has no DAGs.
"""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG

from tallystick.errors import FeedFileInvalid
from tallystick.orchestration.ingest import ingest_dag
from tallystick.orchestration.reconcile import reconcile_dag
from tallystick.orchestration.repair import repair_dag
from tallystick.settings.feeds import read_feeds


def build_all(folder: Path) -> dict[str, DAG]:
    """The DAGs of every feed whose file is right, by id.

    Raises ConfigurationError if there is no such folder.
    """
    dags = (
        build(feed)
        for feed in read_feeds(folder).feeds.values()
        for build in (ingest_dag, reconcile_dag, repair_dag)
    )
    return {dag.dag_id: dag for dag in dags}


def require_valid(folder: Path) -> None:
    """Raise FeedFileInvalid with every problem of every file: file, line, key, what is accepted."""
    problems = read_feeds(folder).problems
    if problems:
        raise FeedFileInvalid([str(each) for each in problems])
