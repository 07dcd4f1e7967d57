"""Airflow plugin: Tallystick's pages in the navigation, on each DAG and on each run.

The only file here that Airflow runs by itself. It imports nothing heavy: every component reads it.
"""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import quote

from airflow.plugins_manager import AirflowPlugin

from tallystick.orchestration.page_link import RUN_ROUTE

_PREFIX = "tallystick"
# A tally, as an address that asks nobody; on a tile of its own, for light and dark alike.
_ICON = "data:image/svg+xml," + quote(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 20"><rect width="20" height="20"'
    ' rx="4" fill="#fff"/><path d="M5 4v12M8 4v12M12 4v12M15 4v12M2 14 18 6" fill="none"'
    ' stroke="#2563a8" stroke-width="1.6"/></svg>'
)


class TallystickPlugin(AirflowPlugin):
    """The app, and where Airflow shows it."""

    name = "tallystick"

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:
        """Made when the api-server asks, and nowhere else."""
        from tallystick.web.mounted import app

        return [{"app": app, "url_prefix": f"/{_PREFIX}", "name": "Tallystick"}]

    # One wrong word here, and Airflow shows nothing of the plugin.
    external_views: ClassVar[list[dict[str, Any]]] = [
        {
            "name": "Tallystick",
            "icon": _ICON,
            "href": f"{_PREFIX}/",
            "destination": "nav",
            "url_route": "tallystick",
            "nav_top_level": True,
        },
        {
            "name": "Tallystick",
            "icon": _ICON,
            "href": f"{_PREFIX}/dag?dag_id={{DAG_ID}}",
            "destination": "dag",
            "url_route": "tallystick-feed",
        },
        {
            "name": "Tallystick",
            "icon": _ICON,
            "href": f"{_PREFIX}/run?dag_id={{DAG_ID}}&run_id={{RUN_ID}}",
            "destination": "dag_run",
            "url_route": RUN_ROUTE,
        },
    ]
