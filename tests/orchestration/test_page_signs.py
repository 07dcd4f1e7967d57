"""What the page's first sentence takes from Airflow's record of runs, and whom it tells of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

pytestmark = [
    pytest.mark.usefixtures("known_dags", "no_runs"),
    pytest.mark.filterwarnings("default"),
]
NOW = datetime.now(UTC)
Ran = Callable[..., None]


@pytest.fixture
def ran() -> Iterator[Ran]:
    """Puts a run of a DAG of `orders` on Airflow's record; all go at the end."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunType

    def put(hours: float, state: str, dag: str = "ingest_orders", **more: Any) -> None:
        at = NOW - timedelta(hours=hours)
        began = {"start_date": at, "queued_at": at, "run_after": at}
        row = {"run_type": DagRunType.MANUAL} | began | more
        with create_session() as session:
            session.add(DagRun(dag_id=dag, run_id=f"told__{hours}", state=state, **row))

    yield put
    with create_session() as session:
        session.query(DagRun).filter(DagRun.run_id.like("told__%")).delete()


def failing(dag: str = "ingest") -> datetime | None:
    from tallystick.domain.identities import FeedName
    from tallystick.web.dag_heads import _dag_heads

    return _dag_heads()[FeedName("orders")][dag].failing_since


def test_a_dry_run_that_is_green_is_no_cure(ran: Ran) -> None:
    ran(3, "failed")
    ran(2, "failed")
    ran(1, "success", conf={"dry_run": True})
    assert failing() == NOW - timedelta(hours=3)


def test_a_dry_run_that_fails_is_no_failing_feed(ran: Ran) -> None:
    ran(2, "success")
    ran(1, "failed", conf={"dry_run": True})
    assert failing() is None


def test_a_failed_run_is_a_sign_however_long_ago_it_was(ran: Ran) -> None:
    """A feed that runs once a month has failed three weeks ago."""
    ran(21 * 24, "failed")
    assert failing() == NOW - timedelta(days=21)


def test_since_when_it_fails_does_not_move_with_time(ran: Ran) -> None:
    """Failing each week for a month: since then, not since two weeks ago."""
    for week in (4, 3, 2, 1):
        ran(week * 7 * 24, "failed")
    assert failing() == NOW - timedelta(weeks=4)


def test_a_failed_run_that_is_cleared_and_runs_again_is_still_no_green_one(ran: Ran) -> None:
    ran(2, "failed")
    ran(1, "running")
    assert failing() == NOW - timedelta(hours=2)


def test_a_newest_run_that_never_ends_is_a_sign(ran: Ran) -> None:
    """Queued for two days, for no worker takes it."""
    ran(49, "success")
    ran(48, "queued")
    assert failing() == NOW - timedelta(hours=48)


def test_a_run_that_may_still_end_is_no_sign(ran: Ran) -> None:
    ran(49, "queued")
    ran(48, "success")
    ran(47, "running", conf={"dry_run": True})
    ran(23, "running")
    ran(47.5, "queued", queued_at=NOW)  # somebody has cleared it just now
    assert failing() is None


def test_the_newest_of_the_runs_that_are_not_green_is_told(ran: Ran) -> None:
    from tallystick.domain.identities import FeedName
    from tallystick.web.dag_heads import _dag_heads

    ran(72, "failed")
    ran(48, "running")
    ran(71, "failed", "reconcile_orders", conf={"dry_run": None})
    heads = _dag_heads()[FeedName("orders")]
    told = [(heads[each].failed_run, heads[each].is_stuck) for each in ("ingest", "reconcile")]
    assert told == [("told__48", True), ("told__71", False)]


def test_a_run_that_waits_for_another_one_to_end_is_not_late() -> None:
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    from tallystick.domain.identities import FeedName
    from tallystick.web.dag_heads import _dag_heads

    def next_at(*, must_wait: bool) -> datetime | None:
        with create_session() as session:
            dag = session.query(DagModel).filter(DagModel.dag_id == "ingest_orders").one()
            before = dag.is_paused, dag.next_dagrun_create_after, dag.exceeds_max_non_backfill
            dag.is_paused, dag.next_dagrun_create_after = False, NOW
            dag.exceeds_max_non_backfill = must_wait
        found = _dag_heads()[FeedName("orders")]["ingest"].next_at
        with create_session() as session:
            dag = session.query(DagModel).filter(DagModel.dag_id == "ingest_orders").one()
            dag.is_paused, dag.next_dagrun_create_after, dag.exceeds_max_non_backfill = before
        return found

    assert (next_at(must_wait=False), next_at(must_wait=True)) == (NOW, None)


def test_who_may_not_see_runs_is_not_told_of_one(
    ran: Ran, ledger_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Page: "a run's tab also asks for the runs of its DAG"."""
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity

    from tests.orchestration.page_place import PagePlace

    place = PagePlace(ledger_dsn)
    really = place.manager.is_authorized_dag

    def without_runs(*, access_entity: Any = None, **rest: Any) -> bool:
        if access_entity is DagAccessEntity.RUN:
            return False
        return bool(really(access_entity=access_entity, **rest))

    monkeypatch.setattr(place.manager, "is_authorized_dag", without_runs)
    ran(1, "failed")
    client = place.client("otto", by_cookie=True)
    assert client.get("/run?dag_id=ingest_orders&run_id=told__1").status_code == 404

    assert "told__1" not in place.client("otto").get("/api/feeds").text
    assert "told__1" not in client.get("/").text


def test_signs_of_another_feed_are_not_told(
    ran: Ran, ledger_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.orchestration.page_place import PagePlace

    place = PagePlace(ledger_dsn)
    place.restrict(monkeypatch, "otto", "ingest_clicks", "reconcile_orders")
    ran(1, "failed", "reconcile_orders")
    assert "orders" not in place.client("otto").get("/api/feeds").text
    assert "orders" not in place.client("otto", by_cookie=True).get("/").text
