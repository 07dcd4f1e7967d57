"""Airflow's LocalExecutor, with the libraries of our tasks imported before its workers are forked.

Every task is a fork of a worker, so it has them at once: importing them takes longer than a small
batch does. This package itself is left out: a task reads it as it is when the task begins.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from airflow.executors.local_executor import LocalExecutor

LIBRARIES: Final = (
    # What Airflow imports in each task's own process.
    "airflow.dag_processing.dagbag",
    "airflow.sdk.execution_time.supervisor",
    "confluent_kafka",
    "hdfs",
    "kafka.net.compat",
    "pandas",
    "psycopg",
    "pyarrow.parquet",
    "pydantic",
    "pyspark.sql.connect.session",
)


class WarmExecutor(LocalExecutor):
    """Airflow's core.executor may be `tallystick.orchestration.warm_executor.WarmExecutor`."""

    def start(self) -> None:
        """Import, then fork the workers."""
        for each in LIBRARIES:
            import_module(each)
        super().start()
