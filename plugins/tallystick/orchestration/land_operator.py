"""The task that lands one batch: the workflow's story, by spark-submit or in a session of a Spark
Connect server. The type of the feed's Spark connection decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Final, NoReturn

from airflow.sdk import BaseOperator

from tallystick.domain.identities import AttemptId, BatchId
from tallystick.orchestration.airflow_releases import conf
from tallystick.orchestration.connections import airflow_connection, services_of
from tallystick.orchestration.failures import in_airflow_terms
from tallystick.orchestration.page_link import PageLink
from tallystick.orchestration.run_context import Context, owner_of
from tallystick.orchestration.stats import step_told
from tallystick.settings.feed import Feed

# By setting of Airflow's section `openlineage`, what the provider adds to Spark's properties.
_INJECTED: Final = {
    "spark_inject_parent_job_info": "inject_parent_job_information_into_spark_properties",
    "spark_inject_transport_info": "inject_transport_information_into_spark_properties",
}


class LandOperator(BaseOperator):
    """Lands a batch in an attempt of its own, and gives the attempt to the tasks after it.

    Each try is another attempt with a newer token, so an application of an earlier try is never
    taken up: what that one writes could not be committed any more.
    """

    template_fields: Sequence[str] = ("batch_id",)
    operator_extra_links = (PageLink(),)

    def __init__(self, *, feed: Feed, batch_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.feed = feed
        self.batch_id = batch_id
        self._interrupt: Callable[[], object] | None = None

    def execute(self, context: Context) -> dict[str, Any] | None:
        """The attempt's fields; None when nothing is left to land."""
        from tallystick.workflows.landing.land import land_batch

        attempt_id = AttemptId(str(context["ti"].id).replace("-", ""))
        with (
            step_told(self.feed.name, "land"),
            in_airflow_terms(),
            services_of(_as_child_of(self.feed, context)) as services,
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
