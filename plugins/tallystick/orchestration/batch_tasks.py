"""The tasks that carry out one batch: land, verify and commit, publish. Runs map them."""

from __future__ import annotations

from typing import Any, Final

from airflow.sdk import task, task_group

from tallystick.orchestration import ingest_tasks
from tallystick.orchestration.land_operator import LandOperator
from tallystick.settings.feed import Feed

# In client mode each is a JVM on the machine that runs the tasks; a pool limits all runs together.
# Proofs are bound alike: each holds the offsets of its batch in memory.
DRIVERS_PER_RUN: Final = 4
_BATCH: Final = "{{ task.op_kwargs['batch_id'] }}"


def batch_tasks(feed: Feed) -> Any:
    """A task group, `batch`, to be expanded over the ids of a run's batches."""

    @task(
        task_id="verify_and_commit",
        map_index_template=_BATCH,
        max_active_tis_per_dagrun=DRIVERS_PER_RUN,
    )
    def verify_and_commit(batch_id: str, attempt: dict[str, Any] | None) -> None:
        ingest_tasks.verify_and_commit(feed, attempt)

    @task(task_id="publish", map_index_template=_BATCH)
    def publish(batch_id: str) -> str:
        return ingest_tasks.publish(feed, batch_id)

    @task_group(group_id="batch")
    def batch(batch_id: str) -> None:
        landed = LandOperator(
            task_id="land",
            feed=feed,
            batch_id=batch_id,
            pool=feed.spark.pool,
            max_active_tis_per_dagrun=DRIVERS_PER_RUN,
            map_index_template="{{ task.batch_id }}",
        )
        verify_and_commit(batch_id=batch_id, attempt=landed.output) >> publish(batch_id=batch_id)

    return batch
