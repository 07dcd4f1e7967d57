"""From red to cured in a running Airflow, by the page alone: what a browser sends, and follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urljoin

import httpx
import pytest

from sandbox import Sandbox
from tests.support.airflow_place import AirflowPlace, a_feed, until
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import ANY_TIME, create_topic

pytestmark = pytest.mark.timeout(900)
FOLLOW_SECONDS = 120.0


@pytest.fixture(scope="module")
def place(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AirflowPlace]:
    place = AirflowPlace(sandbox, tmp_path_factory.mktemp("feeds"), {"cured": a_feed("cured")})
    yield place
    place.rest.close()
    del sandbox.airflow.settings["TALLYSTICK_FEEDS"]


class Browser:
    """A person's browser without scripts: pages, links, and the forms that stand in them."""

    def __init__(self, url: str, user: str, password: str) -> None:
        login = {"username": user, "password": password}
        token = httpx.post(f"{url}/auth/token", json=login).raise_for_status().json()
        self._client = httpx.Client(base_url=f"{url}/tallystick/", follow_redirects=True)
        self._client.cookies.set("_token", token["access_token"])
        self._origin = {"origin": url, "sec-fetch-site": "same-origin"}
        self.address = ""
        self.text = ""

    def close(self) -> None:
        """End the session."""
        self._client.close()

    def open(self, address: str) -> str:
        """The page's text."""
        return self._seen(self._client.get(address))

    def press(self, button: str) -> str:
        """The page to which the form of this button leads."""
        [form] = [
            each
            for each in re.findall(r'<form class="act".*?</form>', self.text, re.DOTALL)
            if f">{button}</button>" in each
        ]
        action = re.search(r'action="([^"]+)"', form)
        assert action
        fields = dict(re.findall(r'name="([^"]+)" value="([^"]*)"', form))
        sent = {name: unescape(value) for name, value in fields.items()}
        address = urljoin(self.address, unescape(action[1]))
        return self._seen(self._client.post(address, data=sent, headers=self._origin))

    def follow(self, words: str) -> str:
        """The page, once it says these words."""
        return until(f"the page says: {words}", lambda: self._says(words), FOLLOW_SECONDS)

    def _says(self, words: str) -> str | None:
        text = self.open(self.address)
        return text if words in text else None

    def _seen(self, answer: httpx.Response) -> str:
        assert answer.status_code == 200, answer.text
        self.address, self.text = str(answer.url), answer.text
        return self.text


@pytest.fixture
def browser(place: AirflowPlace) -> Iterator[Browser]:
    """Of a person who may change."""
    env = place.env
    browser = Browser(env["AIRFLOW_URL"], env["AIRFLOW_USER"], env["AIRFLOW_PASSWORD"])
    yield browser
    browser.close()


def test_a_deleted_file_is_cured_from_the_page_of_its_finding(
    place: AirflowPlace, browser: Browser
) -> None:
    create_topic(place.kafka, "cured", config=ANY_TIME)
    produce(place.kafka, "cured", messages(300))
    place.start("ingest_cured").succeeds()
    produced = place.produced("cured", {0: 300})
    lost = place.lose_a_file("cured").rpartition("/")[2]
    assert place.start("reconcile_cured").end() == "failed"

    browser.open("feeds/cured")
    [number] = re.findall(r'class="button" href="\.\./findings/(\d+)#act"', browser.text)
    assert "Repair or accept" in browser.text
    assert "repair_cured is paused" not in browser.open(f"findings/{number}")

    assert " data-follow>" in browser.press("Show what a repair would do")
    planned = browser.follow(f"Repair finding {number} now")
    assert f"{lost} of batch" in planned
    assert "will be landed again" in planned
    assert place.rows("cured") != produced

    assert " data-follow>" in browser.press(f"Repair finding {number} now")
    cured = browser.follow("Nothing: it is closed.")
    assert "<form" not in cured
    assert place.rows("cured") == produced
    place.start("reconcile_cured").succeeds()

    triggered = place.rest.get("/dags/repair_cured/dagRuns", order_by="id")["dag_runs"]
    assert [each["triggering_user_name"] for each in triggered] == [place.env["AIRFLOW_USER"]] * 2
    assert [each["conf"]["dry_run"] for each in triggered] == [True, False]

    run = f"run?dag_id=repair_cured&run_id={triggered[1]['dag_run_id'].replace('+', '%2B')}"
    assert "What it was asked about" in browser.open(run)
    assert "closed: " in browser.text


def test_the_plan_of_a_run_that_lands_nothing_is_on_its_tab(
    place: AirflowPlace, browser: Browser
) -> None:
    run = place.start("ingest_cured", dry_run=True).succeeds()
    text = browser.open(f"run?dag_id=ingest_cured&run_id={run.run_id.replace('+', '%2B')}")
    assert "What a run would land" in text
    assert "offsets are due" in text
