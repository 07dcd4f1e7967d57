"""Waivers on the page: one person asks, another one approves, one ends them; of a whole trouble."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tallystick.domain.rules.waivers import WaiverWish
from tests.orchestration.page_place import PagePlace
from tests.orchestration.test_page_actions import BAD, digest, forms_in, page, send
from tests.support.ledger_story import FEED, LedgerStory

pytestmark = [
    pytest.mark.usefixtures("known_dags", "_paused"),
    pytest.mark.filterwarnings("default"),
]
LATER = "2199-01-01T00:00"


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
    assert forms_in(page(place, "vera")) == []
    assert forms_in(waived) == ["../findings/1/repair", "../findings/1/waiver/end"]
    assert send(place, "uma", "/findings/1/waiver/end", reason="no more") == "../../../findings/1"
    assert "uma ended that at" in page(place, "vera")
    assert "../findings/1/waiver-requests" in forms_in(page(place, "ugo"))


def three_of_one_trouble(story: LedgerStory) -> list[str]:
    """Findings 1 to 3; the digests of their evidence."""
    first = story.finding().finding
    story.ledger.record_findings(
        FEED,
        [
            replace(first, from_offset=each, until_offset=each + 1, evidence={"of": each})
            for each in (5, 6)
        ],
    )
    return [digest(story, each) for each in (1, 2, 3)]


def test_a_trouble_is_waived_and_ended_as_a_whole(story: LedgerStory, place: PagePlace) -> None:
    read = ", ".join(three_of_one_trouble(story))
    assert f'name="evidence" value="{read}"' in page(place, "uma", "/findings/2")
    sent = {"reason": "known", "until": LATER, "evidence": read}
    send(place, "uma", "/findings/2/waiver-requests", **sent)
    assert "to accept the 3 findings 1-3 until" in page(place, "ugo", "/findings/3")
    told = place.client("ugo").get("/api/findings/3").json()
    number = told["waiver_request"]["number"]
    assert {*told["waiver_evidence"]} == {*told["waiver_request"]["together"]} == {"1", "2", "3"}

    send(place, "ugo", f"/findings/3/waiver-requests/{number}/approve")

    found = [place.client("ugo").get(f"/api/findings/{each}").json() for each in (1, 2, 3)]
    assert [each["finding"]["state"] for each in found] == ["waived"] * 3
    assert {*found[0]["repair_evidence"]} == {"1", "2", "3"}
    assert "End the waiver of the 3 findings 1-3 as ugo" in page(place, "ugo")
    ended = place.client("ugo").post("/api/findings/1/waiver/end", json={"reason": "no more"})
    assert ended.json()["finding"]["waiver"]["ending"]["reason"] == "no more"
    assert {each.state.value for each in story.ledger.findings(FEED)} == {"open"}
    assert place.client("ugo").post("/api/findings/1/waiver/end", json={}).status_code == 422


def test_who_approves_reads_the_evidence_of_all_on_one_page(
    story: LedgerStory, place: PagePlace
) -> None:
    read = three_of_one_trouble(story)
    sent = {"reason": "known", "until": LATER, "evidence": ", ".join(read)}
    send(place, "uma", "/findings/1/waiver-requests", **sent)
    seen = page(place, "ugo")
    assert "Approve as ugo" in seen
    for number in (5, 6):
        assert f"orders-0 [{number}, {number + 1})" in seen
        assert f"&#34;of&#34;: {number}" in seen
        assert "1 offset is missing." in seen
    assert all(f"Digest: {each}" in seen for each in read)
    assert re.search(r"Together: \d offsets are missing\.", seen)


def test_of_a_trouble_nothing_is_asked_for_that_was_not_read(
    story: LedgerStory, place: PagePlace
) -> None:
    first, second, third = three_of_one_trouble(story)
    sent = {"reason": "known", "until": LATER, "evidence": f"{first}, {third}"}
    answer = place.send_form("uma", "/findings/1/waiver-requests", sent)
    assert answer.status_code == 409
    assert f"of finding 2 is {second} by now, not {first}, {third}" in answer.text
    assert not story.ledger.waiver_requests([1, 2, 3])


def test_what_was_asked_for_already_is_not_asked_for_again(
    story: LedgerStory, place: PagePlace
) -> None:
    sent = {"reason": "known", "until": LATER, "evidence": digest(story)}
    send(place, "uma", "/findings/1/waiver-requests", **sent)
    _, second, third = three_of_one_trouble(story)
    send(place, "ugo", "/findings/2/waiver-requests", **sent | {"evidence": f"{second},{third}"})
    requests = story.ledger.waiver_requests([1, 2, 3])
    assert [each.wish.asked_by for each in requests.values()] == ["uma", "ugo", "ugo"]
    send(place, "uma", f"/findings/3/waiver-requests/{requests[3].number}/withdraw")
    endings = [each.ending for each in story.ledger.waiver_requests([1, 2, 3]).values()]
    assert endings == [None, "withdrawn", "withdrawn"]


def test_a_program_asks_and_withdraws(story: LedgerStory, place: PagePlace) -> None:
    client, routes = place.client("uma"), "/api/findings/1/waiver-requests"
    sent = {"reason": "known", "until": f"{LATER}:00Z", "evidence": [digest(story)]}
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
        {"evidence": ["all of it"]},
        {"evidence": "0a1b2c3d"},
    ],
    ids=str,
)
def test_what_a_program_sends_wrongly_changes_nothing(
    story: LedgerStory, place: PagePlace, changed: dict[str, object]
) -> None:
    sent = {"reason": "known", "until": f"{LATER}Z", "evidence": [digest(story)]} | changed
    answer = place.client("uma").post("/api/findings/1/waiver-requests", json=sent)
    assert answer.status_code == 422
    assert next(iter(changed)) in answer.json()["detail"]
    assert not story.ledger.waiver_requests([1])


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
    asked = story.ledger.waiver_requests([1])[1]
    assert asked.wish.reason == text


def test_who_has_asked_is_known_however_the_name_is_written(
    story: LedgerStory, place: PagePlace
) -> None:
    read = digest(story)
    end = datetime(2199, 1, 1, tzinfo=UTC)
    wish = WaiverWish(finding_id=1, reason="x", asked_by="\uff35ma", expires_at=end, digest=read)
    story.ledger.ask_for_waivers([wish])
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
