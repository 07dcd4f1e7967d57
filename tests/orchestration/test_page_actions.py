"""From red to cured on the page: a plan, and a repair that the page follows."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest

from tallystick.orchestration.run_context import SHOWN
from tests.orchestration.page_place import PagePlace
from tests.support.busy import BUSY_SECONDS
from tests.support.ledger_story import FEED, LedgerStory, finding_of
from tests.support.waivers import accept

pytestmark = [
    pytest.mark.usefixtures("known_dags", "_paused"),
    pytest.mark.filterwarnings("default"),
]
BAD = '<script>alert(1)</script>\u202e" onmouseover=x'


def digest(story: LedgerStory, number: int = 1) -> str:
    found = story.finding(number)
    return found.digest


def page(place: PagePlace, user: str, address: str = "/findings/1") -> str:
    answer = place.client(user, by_cookie=True).get(address)
    assert answer.status_code == 200
    return str(answer.text)


def send(place: PagePlace, user: str, address: str, **sent: str) -> str:
    """Where the form leads to."""
    answer = place.send_form(user, address, sent)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def forms_in(text: str) -> list[str]:
    return re.findall(r'<form class="act[^>]* action="([^"]+)"', text)


def only_run() -> Any:
    from airflow import settings
    from airflow.models import DagRun
    from sqlalchemy import select

    [run] = settings.Session().scalars(select(DagRun).where(DagRun.dag_id == "repair_orders"))
    return run


def ends(run: Any, state: str = "success", plan: object = None) -> None:
    """The run is over, and its first task has shown a plan."""
    from airflow import settings
    from airflow.models import DagRun
    from airflow.models.xcom import XComModel
    from sqlalchemy import update

    session = settings.Session()
    session.execute(update(DagRun).where(DagRun.id == run.id).values(state=state))
    session.commit()
    if plan is not None:
        XComModel.set(
            key=SHOWN,
            value=plan,
            dag_id=run.dag_id,
            task_id="begin",
            run_id=run.run_id,
            serialize=False,
        )


def a_plan(*lines: str, left_out: int = 0, evidence: Sequence[str] = ()) -> dict[str, object]:
    shown = [{"text": each, "is_warning": False} for each in lines]
    return {"lines": shown, "left_out": left_out, "evidence": list(evidence)}


def test_a_plan_is_shown_then_the_repair_is_run_and_followed_until_it_is_closed(
    story: LedgerStory, place: PagePlace
) -> None:
    first = page(place, "uma")
    assert forms_in(first) == ["../findings/1/repair", "../findings/1/waiver-requests"]
    assert first.index("<button") < first.index('class="next"')
    evidence = digest(story)

    asked = {"evidence": evidence, "dry_run": "true", "unpause": "true"}
    assert send(place, "uma", "/findings/1/repair", **asked) == "../../findings/1"
    dry = only_run()
    assert dry.conf == {"findings": "1", "evidence": evidence, "dry_run": True}
    assert (dry.dag_id, dry.triggering_user_name) == ("repair_orders", "uma")
    waiting = page(place, "ugo")
    assert " data-follow>" in waiting
    assert "This page follows the run." in waiting
    assert "../findings/1/repair" not in forms_in(waiting)

    ends(dry, plan=a_plan("part-0 will be landed again", left_out=3))
    planned = page(place, "ugo")
    assert " data-follow>" not in planned
    assert "part-0 will be landed again" in planned
    assert "and 3 lines more" in planned
    assert '<button class="primary" type="submit">Repair finding 1 now' in planned
    assert '<button type="submit">Ask again' in planned

    send(place, "ugo", "/findings/1/repair", evidence=evidence)
    found = place.client("ugo").get("/api/feeds/orders/repairs").json()
    real, earlier = found["runs"]
    assert (real["is_dry_run"], real["asked_by"], real["findings"]) == (False, "ugo", [1])
    assert (earlier["state"], found["is_paused"]) == ("success", False)

    story.ledger.close_findings(FEED, {1: "It was landed again."})
    closed = page(place, "uma")
    assert "Nothing: it is closed. It was landed again. That was " in closed
    assert forms_in(closed) == []
    assert '<h1>Finding 1 <span class="verdict">closed</span></h1>' in closed
    assert "Accept it for a time" not in closed
    address = f"/run?dag_id=repair_orders&run_id={real['run_id'].replace('+', '%2B')}"
    told = place.client("uma").get(f"/api{address}").json()
    assert [each["closed_by"] for each in told["asked_findings"]] == ["It was landed again."]
    assert told["asked"]["run_id"] == real["run_id"]
    assert "What it was asked about" in page(place, "uma", address)


def test_a_repair_names_the_open_findings_of_the_same_trouble(
    story: LedgerStory, place: PagePlace
) -> None:
    first = story.finding()
    story.ledger.record_findings(
        FEED,
        [
            replace(first.finding, from_offset=5, until_offset=9, evidence={"of": "the same"}),
            replace(first.finding, from_offset=9, until_offset=10, evidence={"of": "it, too"}),
        ],
    )
    accept(story.ledger, 3)
    found = place.client("uma").get("/api/findings/1").json()
    assert found["finding_ids"] == [1, 2, 3]
    send(place, "uma", "/findings/1/repair", evidence=digest(story), dry_run="true")
    named = {"findings": "1, 2", "evidence": f"{digest(story)}, {digest(story, 2)}"}
    assert only_run().conf == named | {"dry_run": True}
    ends(only_run(), plan=a_plan("part-0 will be landed again"))
    assert "Repair 2 of 3 findings now" in page(place, "ugo", "/findings/2")


def test_a_repair_that_fails_or_leaves_the_finding_is_told(
    story: LedgerStory, place: PagePlace
) -> None:
    send(place, "uma", "/findings/1/repair", evidence=digest(story), unpause="true")
    ends(only_run(), "failed")
    assert "The repair has failed: its run says what is left." in page(place, "uma")
    ends(only_run())
    assert "The repair is over, and the finding stands" in page(place, "uma")


def test_a_paused_repair_says_that_its_run_waits(story: LedgerStory, place: PagePlace) -> None:
    assert "Unpause repair_orders" in page(place, "uma")
    send(place, "uma", "/findings/1/repair", evidence=digest(story), dry_run="true")
    waiting = page(place, "uma")
    assert "repair_orders is paused, so this run waits" in waiting
    assert "../findings/1/repair" in forms_in(waiting)


def test_what_airflow_refuses_is_told_in_its_words(
    story: LedgerStory, place: PagePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = place.manager.is_authorized_dag

    def may_trigger_only(*, method: str, access_entity: Any = None, **rest: Any) -> bool:
        return method != "PUT" and bool(really(method=method, access_entity=access_entity, **rest))

    monkeypatch.setattr(place.manager, "is_authorized_dag", may_trigger_only)
    sent = {"evidence": digest(story), "unpause": True}
    refused = place.client("uma").post("/api/findings/1/repair", json=sent)
    assert refused.status_code == 403
    assert refused.json()["detail"] == "Airflow has not done it: Forbidden"


def test_a_finding_that_no_repair_mends_is_not_repaired(
    story: LedgerStory, place: PagePlace
) -> None:
    story.ledger.record_findings(FEED, [finding_of(6, 7)])
    assert "No repair mends it." in page(place, "uma", "/findings/2")
    sent = {"evidence": digest(story, 2)}
    assert place.client("uma").post("/api/findings/2/repair", json=sent).status_code == 409


def test_what_a_dry_run_would_not_change_is_not_offered(
    story: LedgerStory, place: PagePlace
) -> None:
    send(place, "uma", "/findings/1/repair", evidence=digest(story), dry_run="true")
    ends(only_run(), plan=a_plan("finding 1 is left") | {"has_steps": False})
    told = page(place, "ugo")
    assert "Repair finding 1 now" not in told
    assert "Neither would a repair change anything." in told
    of_run = page(place, "ugo", f"/run?dag_id=repair_orders&run_id={quote(only_run().run_id)}")
    assert "Repair now" not in of_run


@pytest.mark.parametrize("value", [a_plan(BAD), BAD, {"lines": BAD}, [BAD], None])
def test_whatever_a_run_shows_is_text(story: LedgerStory, place: PagePlace, value: object) -> None:
    send(place, "uma", "/findings/1/repair", evidence=digest(story), dry_run="true")
    ends(only_run(), plan=value)
    text = page(place, "uma")
    assert "<script>alert" not in text
    assert ("&lt;script&gt;" in text) == (value == a_plan(BAD))


@pytest.mark.parametrize("run_id", ["none", "..", "a/../../../../assets", "%00", "a?b#c"])
def test_a_run_that_airflow_does_not_know_is_told_from_the_ledger_alone(
    place: PagePlace, run_id: str
) -> None:
    told = place.client("vera").get(
        "/api/run", params={"dag_id": "repair_orders", "run_id": run_id}
    )
    assert (told.status_code, told.json()["asked"]) == (200, None)


def test_a_browser_that_says_its_origin_alone_is_heard_and_so_is_a_proxys_address(
    story: LedgerStory, place: PagePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/here")
    sent = {"evidence": digest(story), "dry_run": "true"}
    for headers in (
        {"origin": "http://testserver"},
        {"origin": "https://airflow.example"},
        {"sec-fetch-site": "same-origin"},
    ):
        answer = place.send_form("uma", "/findings/1/repair", sent, headers)
        assert answer.status_code == 303


def test_a_slow_airflow_is_not_waited_for(place: PagePlace) -> None:
    from fastapi import FastAPI

    from tallystick.web.airflow_rest import AirflowRefused, AirflowRest
    from tallystick.web.desk import READER_SECONDS

    slow, released = FastAPI(), threading.Event()
    slow.get("/api/v2/dags")(lambda: released.wait(BUSY_SECONDS) and {})

    async def ask() -> None:
        try:
            with pytest.raises(AirflowRefused, match=f"no answer within {READER_SECONDS:g} s"):
                await AirflowRest(lambda: slow).get(place.user("uma"), "dags")
        finally:
            released.set()

    asyncio.run(ask())


def test_a_change_that_nobody_waits_for_is_kept_until_it_is_over_and_told(
    place: PagePlace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from fastapi import FastAPI

    from tallystick.web import airflow_rest

    slow, released = FastAPI(), asyncio.Event()
    monkeypatch.setattr(airflow_rest, "_CHANGE_SECONDS", 0.1)

    @slow.post("/api/v2/dags")
    async def post() -> dict[str, str]:
        await released.wait()
        return {}

    async def given_up_then_answered() -> None:
        rest = airflow_rest.AirflowRest(lambda: slow)
        with pytest.raises(airflow_rest.AirflowRefused, match="look whether it is done"):
            await rest.post(place.user("uma"), "dags", body={})
        [kept] = rest._going_on
        released.set()
        await kept
        await asyncio.sleep(0)
        assert not rest._going_on

    asyncio.run(given_up_then_answered())
    assert "Airflow has answered POST dags late: 200" in caplog.text


@pytest.mark.parametrize("named", ["9" * 5000, "9" * 19])
def test_a_run_that_names_no_number_of_the_ledgers_spoils_no_page(
    story: LedgerStory, place: PagePlace, named: str
) -> None:
    from airflow import settings

    send(place, "uma", "/findings/1/repair", evidence=digest(story), dry_run="true")
    session = settings.Session()
    session.merge(only_run()).conf = {"findings": named, "dry_run": True}
    session.commit()
    page(place, "vera", "/feeds/orders")
    page(place, "vera", f"/run?dag_id=repair_orders&run_id={quote(only_run().run_id)}")


@pytest.mark.parametrize("named", ["0", "1, 0", "\u0663", "9" * 19, "1,"])
def test_a_form_that_names_no_finding_is_not_understood(place: PagePlace, named: str) -> None:
    assert place.send_form("uma", "/feeds/orders/repair", {"findings": named}).status_code == 422


def test_the_evidence_of_another_finding_does_not_stand_for_what_was_read(
    story: LedgerStory, place: PagePlace
) -> None:
    read = digest(story)
    first = story.finding()
    worse = replace(first.finding, evidence={"length_bytes": 0})
    other = replace(worse, from_offset=5, until_offset=9)
    story.ledger.record_findings(FEED, [worse, other])
    assert digest(story, 1) == digest(story, 2)
    answer = place.send_form("uma", "/findings/1/repair", {"evidence": read})
    assert answer.status_code == 409
    assert f"by now, not {read}" in answer.text
