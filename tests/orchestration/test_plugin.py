"""What Airflow makes of the plugin: its app, its entries, and the links on our tasks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.orchestration.page_place import MOUNT
from tests.support.ledger_story import LedgerStory
from tests.support.repository import said_by_new_python

pytestmark = [pytest.mark.usefixtures("airflow_database"), pytest.mark.filterwarnings("default")]
TOLD = {"announce_complete"}
LINKED = {
    "ingest_orders": {"finish", "plan", "batch.land", "batch.commit_and_publish", "announce",
                      "check"},
    "reconcile_orders": {"reconcile", "judge"},
    "repair_orders": {"begin", "batch.land", "batch.commit_and_publish", "settle"},
}  # fmt: skip


def test_airflow_loads_the_plugin_and_shows_it_where_people_look() -> None:
    from airflow import plugins_manager
    from airflow.api_fastapi.core_api.datamodels.plugins import ExternalViewResponse

    plugins, errors = plugins_manager._get_plugins()

    assert errors == {}
    [ours] = [each for each in plugins if each.name == "tallystick"]
    views = [ExternalViewResponse.model_validate(each) for each in ours.external_views]
    assert [each.destination for each in views] == ["nav", "dag", "dag_run"]
    assert len({each.url_route for each in views}) == 3
    assert not any(each.href.startswith("/") for each in views)
    # Nobody else is asked for it.
    assert all((each.icon or "").startswith("data:image/svg+xml,") for each in views)


def test_who_needs_no_page_does_not_wait_for_it() -> None:
    code = (
        "import sys, tallystick_plugin as it; it.TallystickPlugin();"
        "print([name for name in ('fastapi', 'tallystick.web', 'psycopg') if name in sys.modules])"
    )
    assert said_by_new_python(code) == "[]"


@pytest.mark.parametrize("dag_id", LINKED)
def test_each_task_links_to_the_page_of_its_run(dags: Any, dag_id: str) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    back = DagSerialization.from_dict(DagSerialization.to_dict(dags[dag_id]))

    assert {each.task_id for each in back.tasks if each.extra_links} == LINKED[dag_id] | TOLD
    assert {link for each in back.tasks for link in each.extra_links} == {"Tallystick"}


def test_the_link_leads_to_the_tab_of_the_run(dags: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/here/")
    task = dags["ingest_orders"].task_dict["check"]
    key = SimpleNamespace(dag_id="ingest_orders", run_id="manual__2026-11-01T00:00:00+00:00")

    [link] = task.operator_extra_links

    assert link.get_link(task, ti_key=key) == (
        "https://airflow.example/here/dags/ingest_orders/runs/"
        "manual__2026-11-01T00%3A00%3A00%2B00%3A00/plugin/tallystick-run"
    )


def test_airflows_own_app_has_ours_behind_its_log_in(
    ledger_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.api_fastapi.app import cached_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from fastapi.testclient import TestClient

    LedgerStory(ledger_dsn).open({0: (0, 9)})
    rest = ledger_dsn.removeprefix("postgresql://")
    monkeypatch.setenv("AIRFLOW_CONN_LEDGER_DEFAULT", f"postgres://{rest}")
    client = TestClient(cached_app(apps="core"), follow_redirects=False)
    token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="vera", role="viewer"))

    assert client.get(f"{MOUNT}/api/feeds").status_code == 401
    assert client.get(f"{MOUNT}/").headers["location"].startswith("/auth/login?next=")
    found = client.get(f"{MOUNT}/api/feeds", headers={"Authorization": f"Bearer {token}"})
    assert [each["feed"] for each in found.json()["feeds"]] == ["orders"]
    client.cookies.set("_token", token)
    assert "<h1>Feeds</h1>" in client.get(f"{MOUNT}/").text
