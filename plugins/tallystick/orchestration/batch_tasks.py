"""The tasks that carry out one batch: land; then verify, commit and publish. Runs map them.

A batch is landed by spark-submit or in a session of a Spark Connect server: the type of the feed's
Spark connection decides. Workflows are imported by the task that needs them: every task and the DAG
processor read this module, and all workflows together take longer than a small task.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final, NoReturn

from airflow.sdk import BaseOperator, task_group

from tallystick.domain.identities import AttemptId, BatchId
from tallystick.orchestration.airflow_releases import AirflowSkipException, conf
from tallystick.orchestration.connections import airflow_connection, services_of
from tallystick.orchestration.failures import in_airflow_terms
from tallystick.orchestration.feed_task import feed_in
from tallystick.orchestration.page_link import PageLink
from tallystick.orchestration.run_context import Context, owner_of
from tallystick.orchestration.stats import step_told, tell_committed
from tallystick.settings.feed import Feed
from tallystick.settings.feed_group import FeedGroup

log = logging.getLogger(__name__)

# In client mode each is a JVM on the machine that runs the tasks; a pool limits all runs together.
# Proofs are bound alike: each holds the offsets of its batch in memory.
DRIVERS_PER_RUN: Final = 4
# By setting of Airflow's section `openlineage`, what the provider adds to Spark's properties.
_INJECTED: Final = {
    "spark_inject_parent_job_info": "inject_parent_job_information_into_spark_properties",
    "spark_inject_transport_info": "inject_transport_information_into_spark_properties",
}
_BATCH: Final = "{{ task.batch_id }}"


class LandOperator(BaseOperator):
    """Lands a batch in an attempt of its own, and gives the attempt to the tasks after it.

    Each try is another attempt with a newer token, so an application of an earlier try is never
    taken up: what that one writes could not be committed any more.
    """

    template_fields: Sequence[str] = ("batch_id",)
    operator_extra_links = (PageLink(),)

    def __init__(self, *, feed: Feed | FeedGroup, batch_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.feed = feed
        self.batch_id = batch_id
        self._interrupt: Callable[[], object] | None = None

    def execute(self, context: Context) -> dict[str, Any] | None:
        """The attempt's fields; None when nothing is left to land."""
        from tallystick.workflows.landing.land import land_batch

        feed = feed_in(self.feed, context)
        attempt_id = AttemptId(str(context["ti"].id).replace("-", ""))
        with (
            step_told(feed.name, "land"),
            in_airflow_terms(),
            services_of(_as_child_of(feed, context)) as services,
        ):
            self._interrupt = partial(services.spark.interrupt, attempt_id)
            attempt = land_batch(services, BatchId(self.batch_id), attempt_id, owner_of(context))
        return asdict(attempt) if attempt else None

    def on_kill(self) -> NoReturn:
        """End what the attempt does, wherever that is, and leave the work at once.

        Called by a signal in the thread that does the work: leaving the block that has started
        spark-submit kills it, and in client mode its driver.
        """
        if self._interrupt:
            self._interrupt()
        raise SystemExit(f"The task {self.task_id} was killed.")


def _as_child_of(feed: Feed, context: Context) -> Feed:
    """The feed, whose applications tell OpenLineage of this task where Airflow's settings say so.

    They are those of the provider's own operator. A session of a server can't be told.
    """
    wanted = [
        inject
        for setting, inject in _INJECTED.items()
        if conf.getboolean("openlineage", setting, fallback=False)
    ]
    if not wanted or airflow_connection(feed.spark.connection).conn_type != "spark":
        return feed
    from airflow.providers.common.compat.openlineage.utils import spark as lineage

    properties = dict(feed.spark.conf)
    for inject in wanted:
        properties = getattr(lineage, inject)(properties, context)
    spark = feed.spark.model_copy(update={"conf": properties})
    return feed.model_copy(update={"spark": spark})


class CommitOperator(BaseOperator):
    """Verifies, commits and publishes what an attempt has landed; gives the id of the batch."""

    template_fields: Sequence[str] = ("batch_id", "attempt")
    operator_extra_links = (PageLink(),)

    def __init__(
        self,
        *,
        feed: Feed | FeedGroup,
        batch_id: str,
        attempt: dict[str, Any] | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.feed = feed
        self.batch_id = batch_id
        self.attempt = attempt

    def execute(self, context: Context) -> str:
        """The batch's id, once readers find it in its directory."""
        self.feed = feed = feed_in(self.feed, context)
        with step_told(feed.name, "commit_and_publish"):
            return commit_and_publish(feed, context, self.batch_id, self.attempt)

    def get_openlineage_facets_on_complete(self, task_instance: object) -> object:
        """Tells OpenLineage's provider, if there is one, where the rows came from and went to.

        What it raises is logged by the provider, and fails no task.
        """
        from tallystick.orchestration.lineage import lineage_of

        return lineage_of(self.feed, self.batch_id) if isinstance(self.feed, Feed) else None


def commit_and_publish(
    feed: Feed, context: Context, batch_id: str, attempt: dict[str, Any] | None
) -> str:
    """The batch's id, once what the attempt has written is proven and readers find it.

    Without an attempt nothing was landed, and what was committed before is published.
    """
    from tallystick.domain.batches.batch import Attempt
    from tallystick.workflows.committing import publishing, verification

    report = None
    with in_airflow_terms(), services_of(feed) as services:
        if attempt is None:
            log.info("Nothing was landed, so there is nothing to verify.")
        else:
            report = verification.verify_and_commit(services, Attempt(**attempt))
        if report:
            tell_committed(feed.name, rows=report.record_count, length_bytes=report.length_bytes)
        if publishing.publish(services, BatchId(batch_id), owner_of(context)) is None:
            raise AirflowSkipException(f"Batch {batch_id} was given up: nothing to publish.")
    return batch_id


def batch_tasks(feed: Feed | FeedGroup) -> Any:
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
