"""The page of feeds that share their DAGs: who may see them, their list, their runs, their acts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.orchestration.cluster import EU, US, Cluster
from tests.orchestration.conftest import parsed_dags
from tests.orchestration.page_place import PagePlace
from tests.orchestration.stage import run
from tests.support.scripted_broker import Kind

pytestmark = [
    pytest.mark.usefixtures("airflow_database", "_short_polls", "no_runs"),
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture
def place(cluster: Cluster) -> PagePlace:
    run(parsed_dags()["ingest_events"])
    return PagePlace(cluster.dsn)


def newest_run(dag_id: str) -> str:
    from airflow.models import DagRun
    from airflow.utils.session import create_session

    with create_session() as session:
        asked = session.query(DagRun.run_id).filter_by(dag_id=dag_id).order_by(DagRun.id.desc())
        return str(asked.first()[0])


def test_who_may_read_the_groups_dag_sees_its_feeds_and_nobody_else(
    place: PagePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.restrict(monkeypatch, "vera", "ingest_events")
    place.restrict(monkeypatch, "otto", "ingest_orders")
    seen = place.client("vera").get("/api/feeds").json()
    assert {each["feed"] for each in seen["feeds"]} == {EU, US}
    assert place.client("vera").get(f"/api/feeds/{EU}").status_code == 200
    assert place.client("otto").get("/api/feeds").json()["feeds"] == []
    assert place.client("otto").get(f"/api/feeds/{EU}").status_code == 404
    assert place.client("otto").get("/dag?dag_id=ingest_events").status_code != 200


def test_the_list_has_each_feed_and_tells_of_the_shared_dags_once(place: PagePlace) -> None:
    _pause("ingest_events")
    answer = place.client("ada").get("/api/feeds").json()
    assert {each["feed"] for each in answer["feeds"]} == {EU, US}
    paused = [each for each in answer["signs"] if each["said"] == "ingest_events is paused"]
    assert [each["feed"] for each in paused] == ["events"]
    assert "events" not in [*answer["yesterday_open"], *answer["wrong"]], "it is no feed"
    for each in answer["feeds"]:
        assert {one["dag_id"] for one in each["next_runs"]} >= {"ingest_events"}


def test_a_feed_of_its_own_page_says_that_the_shared_dag_is_paused(place: PagePlace) -> None:
    _pause("ingest_events")
    page = place.client("ada", by_cookie=True).get(f"/feeds/{EU}")
    assert page.status_code == 200
    assert "ingest_events is paused" in page.text


@pytest.mark.parametrize("address", ["/dag?dag_id=ingest_events", "/feeds/events"])
def test_the_tab_of_a_shared_dag_lists_the_groups_feeds(place: PagePlace, address: str) -> None:
    page = place.client("ada", by_cookie=True).get(address)
    assert page.status_code == 200
    up = "../" if address.startswith("/feeds") else ""
    for feed in (EU, US):
        assert f'href="{up}feeds/{feed}"' in page.text


def test_a_run_names_its_feeds_and_shows_what_one_of_them_has_of_it(
    place: PagePlace, cluster: Cluster
) -> None:
    asked = {"dag_id": "ingest_events", "run_id": newest_run("ingest_events")}
    of_all = place.client("ada").get("/api/run", params=asked).json()
    assert set(of_all["feeds"]) == {EU, US}
    of_one = place.client("ada").get("/api/run", params={**asked, "feed": EU}).json()
    assert (of_one["feed"], len(of_one["batches"]), of_one["feeds"]) == (EU, 1, None)
    page = place.client("ada", by_cookie=True).get("/run", params=asked)
    assert f"&amp;feed={EU}" in page.text
    assert "No batch." not in page.text, "its feeds have some"
    other = place.client("ada").get("/api/run", params={**asked, "feed": "orders"})
    assert other.status_code == 404


def test_a_run_of_a_group_says_which_feed_has_failed_and_with_what(
    place: PagePlace, cluster: Cluster
) -> None:
    cluster.brokers["orders.us"].logs[0].append(Kind.RECORD, 5)
    cluster.brokers["orders.us"].logs[0].log_start_offset = 12
    run(parsed_dags()["ingest_events"])
    asked = {"dag_id": "ingest_events", "run_id": newest_run("ingest_events")}
    page = place.client("ada", by_cookie=True).get("/run", params=asked)
    assert f"Feed {US}: PROVEN_LOSS" in page.text
    assert list(place.client("ada").get("/api/run", params=asked).json()["feeds"]) == [US, EU]


@pytest.mark.parametrize("kind", ["ingest", "reconcile", "repair"])
def test_what_is_begun_from_a_feeds_page_is_for_that_feed(place: PagePlace, kind: str) -> None:
    sent: dict[str, Any] = {"unpause": True}
    begun = place.client("ada").post(f"/api/feeds/{EU}/{kind}", json=sent)
    assert begun.status_code == 201, begun.text
    assert (begun.json()["dag_id"], begun.json()["feed"]) == (f"{kind}_events", EU)
    if kind == "repair":
        runs = [
            place.client("ada").get(f"/api/feeds/{feed}/repairs").json()["runs"]
            for feed in (EU, US)
        ]
        assert [len(each) for each in runs] == [1, 0]


def test_a_feed_of_a_group_is_retired_while_its_file_is_there(place: PagePlace) -> None:
    gone = {"reason": "its topic is gone"}
    ended = place.client("ada").post(f"/api/feeds/{EU}/retire", json=gone)
    assert ended.status_code == 200, ended.text
    assert {each["feed"] for each in place.client("ada").get("/api/feeds").json()["feeds"]} == {US}


def _pause(dag_id: str) -> None:
    from airflow.models import DagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        session.query(DagModel).filter_by(dag_id=dag_id).update({"is_paused": True})
