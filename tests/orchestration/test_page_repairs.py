"""What a repair from the page is of: the findings and the evidence that its dry run has read."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote

import pytest

from tests.orchestration.page_place import PagePlace
from tests.orchestration.test_page_actions import (
    a_plan,
    digest,
    ends,
    forms_in,
    only_run,
    page,
    send,
)
from tests.support.ledger_story import FEED, LedgerStory

pytestmark = [
    pytest.mark.usefixtures("known_dags", "_paused"),
    pytest.mark.filterwarnings("default"),
]


def hidden_in(text: str, name: str) -> list[str]:
    return re.findall(rf'type="hidden" name="{name}" value="([^"]*)"', text)


def test_a_trouble_of_more_findings_than_a_repair_names_is_repaired_in_parts(
    story: LedgerStory, place: PagePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = story.finding()
    others = [
        replace(first.finding, from_offset=5 + each, until_offset=6 + each) for each in (0, 1)
    ]
    story.ledger.record_findings(FEED, others)
    monkeypatch.setattr("tallystick.web.reading.MOST_NAMED", 2)
    send(place, "uma", "/findings/3/repair", evidence=digest(story, 3), dry_run="true")
    assert only_run().conf["findings"] == "1, 3"
    ends(only_run(), plan=a_plan())
    assert "Repair 2 of 3 findings now" in page(place, "uma", "/findings/3")


def test_a_finding_is_repaired_after_a_dry_run_of_its_evidence_as_it_is_now(
    story: LedgerStory, place: PagePlace
) -> None:
    send(place, "uma", "/findings/1/repair", evidence=digest(story), dry_run="true")
    ends(only_run(), plan=a_plan("part-0 will be landed again"))
    assert "Repair finding 1 now" in page(place, "uma")
    read = story.finding()
    story.ledger.record_findings(FEED, [replace(read.finding, evidence={"length_bytes": 0})])
    told = page(place, "uma")
    assert "Repair finding 1 now" not in told
    assert "Show what a repair would do" in told


def test_what_a_run_was_asked_about_is_repaired_as_its_dry_run_has_read_it(
    story: LedgerStory, place: PagePlace
) -> None:
    first = story.finding()
    numbers = range(2, 151)
    others = [replace(first.finding, from_offset=each, until_offset=each + 1) for each in numbers]
    story.ledger.record_findings(FEED, others)
    send(place, "uma", "/findings/1/repair", evidence=digest(story), dry_run="true")
    ends(only_run(), plan=a_plan("part-0 will be landed again", evidence=[digest(story)]))
    told = page(place, "uma", f"/run?dag_id=repair_orders&run_id={quote(only_run().run_id)}")
    [findings], [evidence] = hidden_in(told, "findings"), hidden_in(told, "evidence")
    assert (findings, evidence) == (", ".join(map(str, range(1, 151))), digest(story))
    send(place, "uma", "/feeds/orders/repair", findings=findings, evidence=evidence)
    real = place.client("uma").get("/api/feeds/orders/repairs").json()["runs"][0]
    assert (len(real["findings"]), real["evidence"]) == (150, [digest(story)])


@pytest.mark.parametrize("evidence", ["all of it", ", ".join(["0badc0de"] * 1_001)], ids=len)
def test_a_form_of_evidence_that_was_not_read_is_not_understood(
    place: PagePlace, evidence: str
) -> None:
    sent = {"evidence": evidence}
    assert place.send_form("uma", "/feeds/orders/repair", sent).status_code == 422


def test_a_feed_is_repaired_from_the_page_of_its_dry_run(
    story: LedgerStory, place: PagePlace
) -> None:
    assert "Show what a repair of all would do" in page(place, "uma", "/feeds/orders")
    led = send(place, "uma", "/feeds/orders/repair", dry_run="true", unpause="true")
    assert led.startswith("../../run?dag_id=repair_orders&run_id=manual__")
    address = led.removeprefix("../..")
    assert "Dry run: queued" in page(place, "uma", address)
    read = digest(story)
    dry = only_run()
    ends(dry, plan=a_plan("part-0 will be landed again", evidence=[read]))
    told = page(place, "uma", address)
    assert "part-0 will be landed again" in told
    assert forms_in(told) == ["feeds/orders/repair"]
    assert (hidden_in(told, "evidence"), hidden_in(told, "findings")) == ([read], [])
    assert forms_in(page(place, "vera", address)) == []

    ends(dry, plan=a_plan())
    assert forms_in(page(place, "uma", address)) == []

    led = send(place, "uma", "/feeds/orders/repair", evidence=read)
    real = place.client("uma").get("/api/feeds/orders/repairs").json()["runs"][0]
    assert (real["findings"], real["evidence"], real["is_dry_run"]) == ([], [read], False)
    story.ledger.close_findings(FEED, {1: "It was landed again."})
    told = page(place, "uma", led.removeprefix("../.."))
    assert "What has ended while it ran" in told
    assert "closed: It was landed again." in told
