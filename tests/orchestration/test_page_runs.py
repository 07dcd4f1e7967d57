"""Check now, land now, retire: buttons on the page of a feed; and what Airflow can't read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.orchestration.page_place import PagePlace
from tests.orchestration.test_page_actions import forms_in, page, send
from tests.support.ledger_story import FEED, LedgerStory

pytestmark = [
    pytest.mark.usefixtures("known_dags", "_paused"),
    pytest.mark.filterwarnings("default"),
]


@pytest.fixture
def broken() -> Iterator[Any]:
    """Puts an import error on Airflow's record; all go at the end."""
    from airflow.models.errors import ParseImportError
    from airflow.utils.session import create_session

    def put(text: str, filename: str = "feed_problems.py") -> None:
        with create_session() as session:
            session.add(ParseImportError(filename=filename, stacktrace=text))

    yield put
    _forget_errors()


def _forget_errors() -> None:
    from airflow.models.errors import ParseImportError
    from airflow.utils.session import create_session

    with create_session() as session:
        session.query(ParseImportError).delete()


@contextmanager
def no_file() -> Iterator[None]:
    """Airflow has no file of `orders` any more, and its DAGs are stale."""
    from airflow.models import DagModel
    from airflow.utils.session import create_session

    def are_stale(*, are: bool) -> None:
        with create_session() as session:
            ours = session.query(DagModel).filter(DagModel.dag_id.like("%_orders"))
            ours.update({"is_stale": are})

    are_stale(are=True)
    try:
        yield
    finally:
        are_stale(are=False)


def said(place: PagePlace, user: str = "vera") -> list[tuple[str | None, str, str]]:
    found = place.client(user).get("/api/feeds").json()["signs"]
    return [(each["feed"], each["said"], each["act"]) for each in found]


@pytest.mark.parametrize(("kind", "label"), [("ingest", "Land now"), ("reconcile", "Check now")])
def test_a_button_begins_a_run_that_the_page_follows(
    place: PagePlace, kind: str, label: str
) -> None:
    from airflow.models import DagModel, DagRun
    from airflow.utils.session import create_session

    address = f"/feeds/orders/{kind}"
    shown = page(place, "uma", "/feeds/orders")
    assert f"..{address}" in forms_in(shown)
    assert label in shown
    assert f"Unpause {kind}_orders, which else begins no run" in shown
    assert f"..{address}" not in forms_in(page(place, "vera", "/feeds/orders"))

    waits = send(place, "uma", address)
    assert f"{kind}_orders is paused, so this run waits" in page(place, "uma", waits[5:])
    leads = send(place, "uma", address, unpause="true")
    with create_session() as session:
        runs = [
            (each.dag_id, each.triggering_user_name, each.conf) for each in session.query(DagRun)
        ]
        is_paused = session.query(DagModel.is_paused).filter_by(dag_id=f"{kind}_orders").scalar()
    assert runs == [(f"{kind}_orders", "uma", {})] * 2
    assert not is_paused
    assert leads.startswith(f"../../run?dag_id={kind}_orders&run_id=manual__")
    followed = page(place, "uma", leads[5:])
    assert " data-follow>" in followed
    assert "is paused" not in followed
    assert "Unpause" not in page(place, "uma", "/feeds/orders").partition(label)[2][:200]


def test_who_may_not_trigger_that_dag_is_refused_by_airflow(
    place: PagePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.restrict(monkeypatch, "uma", "ingest_orders", "repair_orders")
    answer = place.send_form("uma", "/feeds/orders/reconcile", {})
    assert answer.status_code == 403
    assert "Airflow has not done it" in answer.text


def test_a_feed_whose_file_is_gone_is_retired_by_name(
    story: LedgerStory, place: PagePlace, broken: Any
) -> None:
    address, reason = "/feeds/orders/retire", {"reason": "over"}
    refused = place.send_form("uma", address, reason)
    assert refused.status_code == 409
    assert "has a file" in refused.text
    assert f"..{address}" not in forms_in(page(place, "uma", "/feeds/orders"))

    with no_file():
        broken("FeedFileInvalid: orders.yaml:3: plan.untill: unknown key")
        assert place.send_form("uma", address, reason).status_code == 409
        _forget_errors()
        assert "Retire orders" not in page(place, "vera", "/feeds/orders")
        assert f"..{address}" in forms_in(page(place, "uma", "/feeds/orders"))
        [sign] = [each for each in said(place) if "Airflow has no" in each[1]]
        assert sign[1:] == (
            "Airflow has no ingest_orders: the feed's file is gone",
            "Bring the file back, or retire the feed.",
        )
        open_ones = place.send_form("uma", address, reason)
        assert open_ones.status_code == 409
        assert "1 findings are open" in open_ones.text
        story.ledger.close_findings(FEED, {1: "It was landed again."})
        [(batch,)] = story.ask("SELECT batch_id FROM batch")
        story.ledger.mark_published(batch)
        assert send(place, "uma", address, **reason) == "../../"
        assert list(story.ledger.ended_feeds()) == [FEED]
        assert story.ask("SELECT reason, retired_by FROM feed_retirement") == [("over", "uma")]
        nobody = place.send_form("uma", "/feeds/nobody/retire", reason)
        assert nobody.status_code == 404


def test_a_file_that_never_parsed_is_in_the_first_sentence(
    place: PagePlace, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tallystick.errors import FeedFileInvalid

    problems = ["/etc/feeds/ghost.yaml:3: plan.untill: unknown key", "ghost.yaml:5: x: y"]
    trace = (
        f"Traceback:\n  File x.py\ntallystick.errors.FeedFileInvalid: {FeedFileInvalid(problems)}"
    )
    broken(trace)
    broken("Traceback:\nKeyError: 'orders.yaml:3: of another DAG'", "somebodys.py")
    ghost = (
        "ghost",
        "Its file is broken: /etc/feeds/ghost.yaml:3: plan.untill: unknown key, and 1 problem more",
        "Mend it: tallystick feed check.",
    )
    assert ghost in said(place)
    assert "unknown key" in page(place, "vera", "/feeds/ghost")
    assert place.client("vera", by_cookie=True).get("/feeds/nobody").status_code == 404

    lacks = "ModuleNotFoundError: No module named 'tallystick'"
    broken(f"Traceback:\n{lacks}", "dags/tallystick_feeds.py")
    of_all = [each[1:] for each in said(place) if each[0] is None]
    told = f"Airflow reads no feed: dags/tallystick_feeds.py: {lacks}"
    assert of_all == [(told, "Mend that file.")]
    broken("errors.FeedFileInvalid: feeds/_defaults.yaml:2: plan: unknown key")
    assert "Airflow reads no feed: feeds/_defaults.yaml:2: plan" in str(said(place))
    assert "Airflow reads no feed" in page(place, "vera", "/")
    place.restrict(monkeypatch, "otto", "ingest_clicks")
    monkeypatch.setattr(place.manager, "is_authorized_view", lambda **_: False)
    assert said(place, "otto") == []
