"""A running Airflow in Chromium: triggered, backfilled, red, cured by the page, accepted by two."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from playwright.sync_api import Browser, expect

from sandbox import Sandbox
from sandbox.services.airflow_settings import ADMIN
from tests.support.airflow_place import HOUR_BEGAN, AirflowPlace, Run, a_feed, until
from tests.support.busy import BUSY_SECONDS, READER_SETTING
from tests.support.chromium import Person, at, chromium
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import ANY_TIME, create_topic

pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("default")]
BEN, BENS_PASSWORD = "ben", "a password of ben"
FOLLOW: Final = 120_000
"""Milliseconds that a page may take to show what Airflow works at."""
_USERS = "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"
_PASSWORDS = "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"


@pytest.fixture(scope="module")
def place(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowPlace]:
    """Airflow with one feed, and two people who may change it."""
    passwords = tmp_path_factory.mktemp("people") / "passwords.json"
    passwords.write_text(json.dumps({ADMIN: sandbox.airflow.password(), BEN: BENS_PASSWORD}))
    ours = {
        _USERS: f"{ADMIN}:admin,{BEN}:op",
        _PASSWORDS: str(passwords),
        READER_SETTING: str(BUSY_SECONDS),
    }
    sandbox.airflow.settings.update(ours)
    feeds = {"cured": a_feed("cured", complete_within="48h")}
    with ExitStack() as undone:
        for name in ours:
            undone.callback(sandbox.airflow.settings.pop, name)
        place = AirflowPlace(sandbox, tmp_path_factory.mktemp("feeds"), feeds)
        undone.callback(place.close)
        create_topic(place.kafka, "cured", config=ANY_TIME)
        produce(place.kafka, "cured", messages(300))
        yield place


@pytest.fixture(scope="module")
def waiting(place: AirflowPlace) -> Run:
    """A run that waits for the last hour to be complete, since before anything was landed."""
    run = place.start("deadline_cured")
    until("it is deferred", lambda: "deferred" in run.states().values())
    return run


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@contextmanager
def signed_in(browser: Browser, url: str, user: str, password: str) -> Iterator[Person]:
    with at(browser, url) as person:
        person.go("/auth/login")
        person.sign_in(user, password)
        yield person


@pytest.fixture
def ada(place: AirflowPlace, browser: Browser) -> Iterator[Person]:
    """Airflow's admin."""
    env = place.env
    with signed_in(browser, env["AIRFLOW_URL"], ADMIN, env["AIRFLOW_PASSWORD"]) as ada:
        yield ada


@pytest.fixture
def ben(place: AirflowPlace, browser: Browser) -> Iterator[Person]:
    """Somebody else who may trigger the feed's DAGs."""
    with signed_in(browser, place.env["AIRFLOW_URL"], BEN, BENS_PASSWORD) as ben:
        yield ben


def finding_in_trouble(person: Person) -> str:
    """The number of the finding to which the feed's page leads."""
    person.go("/tallystick/feeds/cured")
    person.page.get_by_role("link", name="Repair or accept").first.click()
    found = re.fullmatch(
        r"Finding (\d+).*", person.page.get_by_role("heading", level=1).inner_text()
    )
    assert found
    return found[1]


@pytest.mark.usefixtures("waiting")
def test_a_run_that_airflows_form_has_triggered_says_on_its_tab_what_it_landed(
    place: AirflowPlace, ada: Person
) -> None:
    place.start("ingest_cured").succeeds()  # else the schedule's run lands what this one should
    produce(place.kafka, "cured", messages(50))
    known = place.runs("ingest_cured")
    ada.go("/dags/ingest_cured")
    ada.page.get_by_role("button", name="Trigger").click()
    form = ada.page.get_by_role("dialog")
    expect(form).to_contain_text("the window is only its label")
    form.get_by_role("button", name="Trigger").click()
    [run] = until("a run", lambda: [one for one in place.runs("ingest_cured") if one not in known])
    run.succeeds()
    assert place.rows("cured") == place.produced("cured", {0: 350})

    ada.go(f"/dags/ingest_cured/runs/{run.run_id}")
    ada.page.locator("a[href$='/plugin/tallystick-run']").click()
    expect(ada.frame.locator(".facts")).to_contain_text(run.run_id)
    landed = ada.frame.get_by_role("region", name="Batches").locator("tbody tr")
    expect(landed).to_contain_text(["published"])
    expect(landed.locator("td").nth(3)).to_have_text("50")


def test_a_range_is_backfilled_from_airflows_form(place: AirflowPlace, ada: Person) -> None:
    produce(place.kafka, "cured", messages(50))
    ada.go("/dags/ingest_cured")
    ada.page.get_by_role("button", name="Trigger").click()
    form = ada.page.get_by_role("dialog").first
    form.get_by_text("Backfill", exact=True).click()
    pick(ada, "From", HOUR_BEGAN - timedelta(hours=5))
    pick(ada, "To", HOUR_BEGAN - timedelta(hours=4))
    form.get_by_text("All Runs").click()
    form.get_by_role("button", name="Run Backfill").click()
    runs = until("its runs", lambda: place.backfilled("ingest_cured"))
    for run in runs:
        run.succeeds()
    assert place.rows("cured") == place.produced("cured", {0: 400})


def pick(person: Person, label: str, instant: datetime) -> None:
    """Fill in one of Airflow's fields of date and time."""
    field = person.page.get_by_text(label, exact=True).locator("..")
    field.get_by_text("Select date and time").click()
    day = person.page.get_by_placeholder("YYYY/MM/DD")
    day.fill(f"{instant:%Y/%m/%d}")
    person.page.get_by_placeholder("HH:mm").fill(f"{instant:%H:%M}")
    day.press("Escape")
    expect(day).to_have_count(0)  # else the next field's would be a second one


def test_a_lost_file_is_cured_from_the_page_of_its_finding(
    place: AirflowPlace, ada: Person
) -> None:
    produced = place.produced("cured", {0: 400})
    lost = place.lose_a_file("cured").rpartition("/")[2]
    assert place.start("reconcile_cured").end() == "failed"

    number, page = finding_in_trouble(ada), ada.page
    page.get_by_role("button", name="Show what a repair would do").click()
    planned = page.get_by_role("button", name=f"Repair finding {number} now")
    expect(planned).to_be_visible(timeout=FOLLOW)  # nobody touches the page meanwhile
    expect(page.locator("#act")).to_contain_text(f"{lost} of batch")
    expect(page.locator("#act")).to_contain_text("will be landed again")
    assert place.rows("cured") != produced
    planned.click()
    expect(page.locator("#act")).to_contain_text("Nothing: it is closed.", timeout=FOLLOW)
    expect(page.locator("#act form")).to_have_count(0)
    assert place.rows("cured") == produced
    place.start("reconcile_cured").succeeds()

    triggered = place.rest.get("/dags/repair_cured/dagRuns", order_by="id")["dag_runs"]
    assert [each["triggering_user_name"] for each in triggered] == [ADMIN, ADMIN]
    assert [each["conf"]["dry_run"] for each in triggered] == [True, False]
    page.locator("#act a", has_text=triggered[1]["dag_run_id"]).first.click()
    expect(page.locator("body")).to_contain_text("What it was asked about")
    expect(page.locator("body")).to_contain_text("closed: ")


def test_two_people_accept_a_finding_and_the_feed_is_in_order(
    place: AirflowPlace, ada: Person, ben: Person
) -> None:
    place.lose_a_file("cured")
    assert place.start("reconcile_cured").end() == "failed"

    number = finding_in_trouble(ada)
    accept = ada.page.locator("#accept")
    accept.get_by_label("Reason").fill("The source has it again <b>tomorrow</b>.")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    accept.get_by_label("Until").fill(tomorrow.strftime("%Y-%m-%dT%H:%M"))
    accept.get_by_role("button", name=f"Ask for it as {ADMIN}").click()
    expect(accept).to_contain_text("You have asked, so somebody else must approve.")

    ben.go(f"/tallystick/findings/{number}")
    expect(ben.page.locator("#accept")).to_contain_text("again <b>tomorrow</b>")
    ben.page.get_by_role("button", name=f"Approve as {BEN}").click()
    expect(ben.page.locator("#accept")).to_contain_text(
        f"asked by {ADMIN}, approved by {BEN}, because: The source has it again"
    )
    place.start("reconcile_cured").succeeds()
    ben.go("/tallystick/")
    row = ben.page.get_by_role("row").filter(has=ben.page.get_by_role("link", name="cured"))
    expect(row).to_contain_text("WAIVED")
    # Feeds of other tests are on this ledger, too.
    expect(ben.page.locator("[data-answer=bad] a", has_text="cured")).to_have_count(0)


def test_who_waits_for_proof_is_woken_by_the_triggerer(waiting: Run) -> None:
    waiting.succeeds()
    assert "proven to be landed" in waiting.log("complete")


def test_the_plan_of_a_run_that_lands_nothing_is_on_its_tab(
    place: AirflowPlace, ada: Person
) -> None:
    run = place.start("ingest_cured", dry_run=True).succeeds()
    ada.go(f"/dags/ingest_cured/runs/{run.run_id}/plugin/tallystick-run")
    expect(ada.frame.locator("body")).to_contain_text("What a run would land")
    expect(ada.frame.locator("body")).to_contain_text("offsets are due")
