"""From red to cured on the page: a plan, a repair that the page follows, a waiver by two people."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import pytest

from tallystick.domain.rules.waivers import WaiverWish
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
LATER = "2199-01-01T00:00"


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
    assert "Nothing: it is closed. It was landed again." in closed
    assert forms_in(closed) == []
    assert '<h1>Finding 1 <span class="verdict">remedied</span></h1>' in closed
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


def test_one_asks_another_approves_and_both_names_are_of_their_log_ins(
    story: LedgerStory, place: PagePlace
) -> None:
    sent = {"reason": BAD, "until": LATER, "evidence": digest(story), "asked_by": "ugo"}
    assert send(place, "uma", "/findings/1/waiver-requests", **sent) == "../../findings/1"
    asked = page(place, "uma")
    assert "You have asked, so somebody else must approve." in asked
    assert "../findings/1/waiver-requests/1/approve" not in forms_in(asked)
    assert "<script>alert" not in asked
    assert "\u202e" not in asked
    refused = place.send_form("uma", "/findings/1/waiver-requests/1/approve", {})
    assert refused.status_code == 409
    assert "somebody else must approve" in refused.text
    assert "Approve as ugo" in page(place, "ugo")
    assert forms_in(page(place, "vera")) == []

    led = send(place, "ugo", "/findings/1/waiver-requests/1/approve", by="ada")
    assert led == "../../../../findings/1"

    told = place.client("vera").get("/api/findings/1").json()
    waiver = told["finding"]["waiver"]
    assert (waiver["asked_by"], waiver["approved_by"], waiver["state"]) == (
        "uma",
        "ugo",
        "in force",
    )
    assert told["waiver_request"]["ending"] == "approved"
    waived = page(place, "uma")
    assert "&lt;script&gt;" in waived
    assert forms_in(waived) == []


def test_a_program_asks_and_withdraws(story: LedgerStory, place: PagePlace) -> None:
    client, routes = place.client("uma"), "/api/findings/1/waiver-requests"
    sent = {"reason": "known", "until": f"{LATER}:00Z", "evidence": digest(story)}
    asked = client.post(routes, json=sent)
    assert (asked.status_code, asked.json()["waiver_request"]["may_be_approved"]) == (201, True)
    assert client.post(routes, json=sent).status_code == 409
    done = place.client("ugo").post(f"{routes}/1/withdraw").json()["waiver_request"]
    assert (done["ending"], done["ended_by"], done["may_be_approved"]) == (
        "withdrawn",
        "ugo",
        False,
    )
    again = place.client("ada").post(f"{routes}/1/approve")
    assert (again.status_code, "was withdrawn by ugo" in again.json()["detail"]) == (409, True)


@pytest.mark.parametrize(
    "changed",
    [
        {"asked_by": "grace"},
        {"approved_by": "grace"},
        {"reason": " "},
        {"reason": "\x1c"},
        {"reason": "x" * 1001},
        {"until": "2020-01-01T00:00Z"},
        {"until": "2199-01-01T00:00"},
        {"until": "9999-12-31T23:59:59-12:00"},
        {"evidence": "all of it"},
    ],
    ids=str,
)
def test_what_a_program_sends_wrongly_changes_nothing(
    story: LedgerStory, place: PagePlace, changed: dict[str, str]
) -> None:
    sent = {"reason": "known", "until": f"{LATER}Z", "evidence": digest(story)} | changed
    answer = place.client("uma").post("/api/findings/1/waiver-requests", json=sent)
    assert answer.status_code == 422
    assert next(iter(changed)) in answer.json()["detail"]
    assert story.ledger.waiver_request(1) is None


def test_a_form_with_an_end_that_is_past_says_so_and_keeps_what_was_written(
    story: LedgerStory, place: PagePlace
) -> None:
    sent = {"reason": f"known {BAD}", "until": "2020-01-01T00:00", "evidence": digest(story)}
    answer = place.send_form("uma", "/findings/1/waiver-requests", sent)
    assert answer.status_code == 422
    assert "<h1>Finding 1" in answer.text
    assert "not understood: until (an instant that is still to come)." in answer.text
    assert "required>known &lt;script&gt;" in answer.text
    assert 'value="2020-01-01T00:00"' in answer.text
    assert forms_in(answer.text) == [
        "../../findings/1/repair", "../../findings/1/waiver-requests"
    ]  # fmt: skip
    again = place.send_form("vera", "/findings/1/waiver-requests", sent)
    assert (again.status_code, "<h1>Finding 1" in again.text) == (403, False)


def test_a_reason_is_as_long_as_a_browser_counts_it(story: LedgerStory, place: PagePlace) -> None:
    text = "x\n" * 499 + "xx"
    sent = {"until": LATER, "evidence": digest(story), "reason": text.replace("\n", "\r\n")}
    send(place, "uma", "/findings/1/waiver-requests", **sent)
    asked = story.ledger.waiver_request(1)
    assert asked
    assert asked.wish.reason == text


def test_who_has_asked_is_known_however_the_name_is_written(
    story: LedgerStory, place: PagePlace
) -> None:
    read = digest(story)
    end = datetime(2199, 1, 1, tzinfo=UTC)
    wish = WaiverWish(finding_id=1, reason="x", asked_by="\uff35ma", expires_at=end, digest=read)
    story.ledger.ask_for_waiver(wish)
    assert "You have asked, so somebody else must approve." in page(place, "uma")
    assert "Approve as ugo" in page(place, "ugo")
    told = place.client("uma").get("/api/findings/1").json()["waiver_request"]
    assert (told["is_own_request"], told["may_be_approved"]) == (True, True)


def test_what_was_not_read_is_neither_accepted_nor_asked_for(
    story: LedgerStory, place: PagePlace
) -> None:
    sent = {"reason": "known", "until": LATER, "evidence": digest(story)}
    send(place, "uma", "/findings/1/waiver-requests", **sent)
    known = story.finding()
    worse = replace(known.finding, evidence={"length_bytes": 0})
    story.ledger.record_findings(FEED, [worse])
    assert "That request is void" in page(place, "ugo")
    approval = "/findings/1/waiver-requests/1/approve"
    assert place.send_form("ugo", approval, {}).status_code == 409
    assert place.send_form("ugo", "/findings/1/waiver-requests", sent).status_code == 409


def test_a_request_that_is_over_is_void_on_the_page(
    story: LedgerStory, place: PagePlace, two_hours_pass: Callable[[], None]
) -> None:
    soon = story.ledger.clock() + timedelta(hours=1)
    sent = {"reason": "known", "until": soon.isoformat(), "evidence": digest(story)}
    send(place, "uma", "/findings/1/waiver-requests", **sent)
    two_hours_pass()
    assert "That request is void" in page(place, "ugo")


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
