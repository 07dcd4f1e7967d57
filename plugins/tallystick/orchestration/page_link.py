"""The link from a task to Tallystick's page of its run, inside Airflow's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink

from tallystick.orchestration.airflow_releases import conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

RUN_ROUTE: Final = "tallystick-run"
"""The last part of the address of the tab that each run has."""


class PageLink(BaseOperatorLink):
    """Leads to what this run has planned, landed, proven and found."""

    name = "Tallystick"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address of the run's tab; below Airflow's own address, or it opens another tab."""
        return page_of_run(ti_key.dag_id, ti_key.run_id)


def page_of_run(dag_id: str, run_id: str) -> str:
    """The address of the run's tab; without a host where Airflow's own is not configured."""
    run = quote(run_id, safe="")
    return f"{_airflow()}/dags/{quote(dag_id, safe='')}/runs/{run}/plugin/{RUN_ROUTE}"


def our_pages() -> str:
    """Below which address our pages are; without a host where Airflow's own is not configured."""
    return f"{_airflow()}/tallystick"


def _airflow() -> str:
    return conf.get("api", "base_url", fallback="").rstrip("/")
