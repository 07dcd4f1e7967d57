"""The tasks that carry out one batch: land; then verify, commit and publish. Runs map them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from airflow.sdk import BaseOperator, task_group

from tallystick.orchestration import ingest_tasks
from tallystick.orchestration.land_operator import LandOperator
from tallystick.orchestration.page_link import PageLink
from tallystick.orchestration.run_context import Context
from tallystick.orchestration.stats import step_told
from tallystick.settings.feed import Feed

# In client mode each is a JVM on the machine that runs the tasks; a pool limits all runs together.
# Proofs are bound alike: each holds the offsets of its batch in memory.
DRIVERS_PER_RUN: Final = 4
_BATCH: Final = "{{ task.batch_id }}"


class CommitOperator(BaseOperator):
    """Verifies, commits and publishes what an attempt has landed; gives the id of the batch."""

    template_fields: Sequence[str] = ("batch_id", "attempt")
    operator_extra_links = (PageLink(),)

    def __init__(
        self, *, feed: Feed, batch_id: str, attempt: dict[str, Any] | None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.feed = feed
        self.batch_id = batch_id
        self.attempt = attempt

    def execute(self, context: Context) -> str:
        """The batch's id, once readers find it in its directory."""
        with step_told(self.feed.name, "commit_and_publish"):
            return ingest_tasks.commit_and_publish(self.feed, context, self.batch_id, self.attempt)

    def get_openlineage_facets_on_complete(self, task_instance: object) -> object:
        """Tells OpenLineage's provider, if there is one, where the rows came from and went to.

        What it raises is logged by the provider, and fails no task.
        """
        from tallystick.orchestration.lineage import lineage_of

        return lineage_of(self.feed, self.batch_id)


def batch_tasks(feed: Feed) -> Any:
    """A task group, `batch`, to be expanded over the ids of a run's batches."""

    @task_group(group_id="batch")
    def batch(batch_id: str) -> None:
        landed = LandOperator(
            task_id="land",
            feed=feed,
            batch_id=batch_id,
            pool=feed.spark.pool,
            max_active_tis_per_dagrun=DRIVERS_PER_RUN,
            map_index_template=_BATCH,
        )
        CommitOperator(
            task_id="commit_and_publish",
            feed=feed,
            batch_id=batch_id,
            attempt=landed.output,
            max_active_tis_per_dagrun=DRIVERS_PER_RUN,
            map_index_template=_BATCH,
        )

    return batch
