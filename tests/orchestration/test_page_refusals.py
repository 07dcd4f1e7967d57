"""What a page and a route say when they refuse, and what the api-server's log says then."""

from __future__ import annotations

import importlib
import logging
from datetime import timedelta

import pytest

from tallystick.errors import (
    ConnectionMissing,
    IngestionError,
    LedgerUnavailable,
    SchemaOutOfDate,
    WaiverRefused,
)
from tallystick.ledger.ledger import Ledger
from tallystick.web.desk import READER_SECONDS
from tests.orchestration.page_place import PagePlace
from tests.support.busy import READER_SETTING

pytestmark = [pytest.mark.usefixtures("known_dags"), pytest.mark.filterwarnings("default")]


def refusing(error: IngestionError) -> PagePlace:
    """A page whose ledger is never there."""

    def opened() -> Ledger:
        raise error

    return PagePlace(opened)


def test_names_keep_their_capitals_in_a_refusal() -> None:
    error = WaiverRefused(3, "Uma has asked, so somebody else must approve A1")
    answer = refusing(error).client("ada").get("/api/feeds")
    assert (answer.status_code, answer.json()["detail"]) == (
        409,
        "Finding 3: Uma has asked, so somebody else must approve A1.",
    )


@pytest.mark.parametrize(
    ("error", "said", "next_step"),
    [
        (
            ConnectionMissing("ledger_default", None, "(places)"),
            "There is no connection ledger_default.",
            "Create it in Airflow, or set AIRFLOW_CONN_LEDGER_DEFAULT for the api-server.",
        ),
        (
            SchemaOutOfDate(0, 1),
            "The ledger could not be asked: SchemaOutOfDate. The api-server's log says why.",
            SchemaOutOfDate(0, 1).next_step,
        ),
        (
            LedgerUnavailable("host db.example is away"),
            "The ledger does not answer.",
            "Try again in a moment. Landing goes on without this page, or waits by itself.",
        ),
    ],
    ids=lambda each: type(each).__name__,
)
def test_the_page_says_what_to_do_and_the_log_why(
    error: IngestionError, said: str, next_step: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "tallystick"):
        answer = refusing(error).client("ada").get("/api/feeds")
    assert (answer.status_code, answer.json()) == (503, {"detail": said, "next_step": next_step})
    assert [each.getMessage() for each in caplog.records] == [
        f"Tallystick's page: {error.describe()}"
    ]


def test_what_is_no_question_to_the_ledger_is_logged_as_well(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*arguments: object) -> None:
        raise LedgerUnavailable("elsewhere")

    monkeypatch.setattr("tallystick.web.reading.in_short", never)
    monkeypatch.setattr("tallystick.web.reading.heads_of_list", lambda ledger: [])
    monkeypatch.setattr("tallystick.web.reading.feeds_of", lambda ledger, heads, now: [])
    monkeypatch.setattr("tallystick.ledger.ledger.Ledger.waiting_requests", lambda ledger: {})
    monkeypatch.setattr("tallystick.ledger.ledger.Ledger.ended_feeds", lambda ledger: {})
    monkeypatch.setattr("tallystick.ledger.ledger.Ledger.recent_runs", lambda *asked, most: {})
    with caplog.at_level(logging.WARNING, "tallystick"):
        place = PagePlace("postgresql://nobody@127.0.0.1:1/none")
        assert place.client("ada").get("/api/feeds").status_code == 503
    assert "elsewhere" in caplog.text


def test_an_unknown_address_is_refused_as_all_others() -> None:
    client = PagePlace("postgresql://nobody@127.0.0.1:1/none").client("ada")
    answer = client.get("/nope")
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    answer = client.get("/api/nope")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found", "next_step": ""})
    answer = client.post("/api/feeds")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


def test_a_reader_waits_for_less_than_two_seconds_where_nothing_is_said() -> None:
    from tallystick.web.app import tallystick_app

    state = tallystick_app(lambda: Ledger("host=nowhere"), lambda: None).state
    assert 0 < state.ledger.reader_seconds < 2
    assert 0 < state.airflow.reader_seconds < 2


def test_airflows_settings_say_how_long_a_reader_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallystick.web import mounted

    before = mounted.app.state
    with monkeypatch.context() as here:
        here.setenv(READER_SETTING, "12")
        here.setattr("tallystick.wiring.adapters.patient_ledger", lambda _, patience: patience)
        state = importlib.reload(mounted).app.state
        assert (state.ledger.reader_seconds, state.airflow.reader_seconds) == (12, 12)
        assert mounted._opened() == timedelta(seconds=10)
    after = importlib.reload(mounted).app.state
    assert after.ledger.reader_seconds == before.ledger.reader_seconds < 2


@pytest.mark.parametrize("said", ["", "2s", "1,8", "0", "0.01", "-1", "nan", "inf", "601"])
def test_a_setting_that_is_wrong_counts_as_none_and_is_told(
    said: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from tallystick.web import mounted

    monkeypatch.setenv(READER_SETTING, said)
    assert mounted._seconds() == READER_SECONDS
    assert "[tallystick] reader_seconds counts as 1.8: " in caplog.text


def test_metrics_whose_token_cannot_be_read_are_closed(caplog: pytest.LogCaptureFixture) -> None:
    def token() -> str:
        raise ConnectionMissing("tallystick_metrics", None, "an extra that is JSON")

    place = PagePlace("postgresql://nobody@127.0.0.1:1/none", metrics_token=token)
    with caplog.at_level(logging.WARNING, "tallystick"):
        answers = [place.client().get("/metrics") for _ in range(2)]
    assert [each.status_code for each in answers] == [404, 404]
    [line] = [each.getMessage() for each in caplog.records]
    assert line.startswith("Tallystick's metrics are closed: ")
