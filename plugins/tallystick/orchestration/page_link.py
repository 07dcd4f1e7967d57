"""The link from a task to Tallystick's page of its run, inside Airflow's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink
from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

RUN_ROUTE: Final = "tallystick-run"
"""The last part of the address of the tab that each run has."""


class PageLink(BaseOperatorLink):
    """What this run has planned, landed, proven and found."""

    name = "Tallystick"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:
        """The address of the run's tab; below Airflow's own address, or it opens another tab."""
        above = conf.get("api", "base_url", fallback="").rstrip("/")
        run = quote(ti_key.run_id, safe="")
        return f"{above}/dags/{quote(ti_key.dag_id, safe='')}/runs/{run}/plugin/{RUN_ROUTE}"
