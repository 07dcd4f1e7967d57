"""The metrics route: closed without a token, for nobody without it, and silent with the ledger."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tallystick.domain.batches.states import Isolation
from tallystick.domain.planning.feed_edits import FeedInFile
from tallystick.errors import LedgerUnavailable
from tests.contract.test_ledger_reports import a_report
from tests.orchestration.page_place import PagePlace
from tests.support.ledger_story import FEED, TOPIC, LedgerStory, finding_of, snapshot_of
from tests.support.looks import record_look
from tests.support.repository import DOCS
from tests.support.waivers import accept

pytestmark = [pytest.mark.usefixtures("airflow_database"), pytest.mark.filterwarnings("default")]
TOKEN = "a token of 24 letters .."
OPEN = {"Accept": "application/openmetrics-text; version=1.0.0", "Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def story(ledger_dsn: str) -> Iterator[LedgerStory]:
    story = LedgerStory(ledger_dsn)
    story.open({0: (0, 20), 1: (0, 5)})
    story.ledger.mark_published(story.committed((0, 0, 10)).batch_id, None)
    record_look(story.ledger, FEED, snapshot_of({0: (0, 20), 1: (0, 5)}))
    story.ledger.record_findings(FEED, [finding_of(0, 5), finding_of(6, 7), finding_of(8, 9)])
    accept(story.ledger, story.ledger.findings(FEED)[0].finding_id)
    story.ledger.store_report(a_report())
    yield story
    story.ledger.close()


def client(dsn: str, token: str | None = TOKEN) -> Any:
    return PagePlace(dsn, metrics_token=lambda: token).client()


def figures(text: str) -> dict[tuple[str, ...], float]:
    """Every sample, by name and the values of its labels but the feed's."""
    return {
        (each.name, *(value for name, value in each.labels.items() if name != "feed")): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


@pytest.mark.parametrize("token", [None, "", "too short"])
def test_without_a_token_there_is_no_such_page(story: LedgerStory, token: str | None) -> None:
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {token}"}):
        answer = client(story.dsn, token).get("/metrics", headers=headers)
        assert (answer.status_code, "orders" in answer.text) == (404, False)


WRONG = [None, "", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN}x", "Bearer \xe9"]


@pytest.mark.parametrize("sent", WRONG)
def test_nobody_without_the_token_reads_them(story: LedgerStory, sent: str | None) -> None:
    headers = {} if sent is None else {"Authorization": sent.encode("latin-1")}
    answer = client(story.dsn).get("/metrics", headers=headers)
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert "orders" not in answer.text
    assert TOKEN not in answer.text


def test_a_log_in_to_airflow_is_no_token(story: LedgerStory) -> None:
    place = PagePlace(story.dsn, metrics_token=lambda: TOKEN)
    assert place.client("ada").get("/metrics").status_code == 401
    # And the token is no log-in.
    assert place.client().get("/api/feeds", headers=OPEN).status_code in (401, 403)


def test_they_say_what_the_ledger_says(story: LedgerStory) -> None:
    answer = client(story.dsn).get("/metrics", headers=OPEN)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.headers["Cache-Control"] == "no-store"
    found = figures(answer.text)
    head = story.ledger.feed_heads(FEED, most_runs=0)[0]
    assert found["tallystick_feed_lag_offsets",] == head.lag == 15
    assert found["tallystick_feed_partitions",] == 2
    verdicts = {name[1]: value for name, value in found.items() if name[0].endswith("_verdict")}
    assert verdicts.pop("PROVEN_LOSS") == 1
    assert set(verdicts.values()) == {0}
    counts = {name[1:]: value for name, value in found.items() if name[0].endswith("_findings")}
    assert counts == {("A1", "PROVEN_LOSS"): 2, ("A1", "WAIVED"): 1}
    assert found["tallystick_feed_batches", "published"] == 1
    assert (
        found["tallystick_feed_committed_rows_total",]
        == found["tallystick_feed_newest_batch_rows",]
    )
    steps = {name[1] for name in found if name[0] == "tallystick_feed_newest_batch_step_seconds"}
    assert steps == {"wait", "land", "commit", "publish"}


def test_a_plain_reader_gets_the_plain_form(story: LedgerStory) -> None:
    answer = client(story.dsn).get("/metrics", headers={**OPEN, "Accept": "*/*"})
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'tallystick_feed_lag_offsets{feed="orders"} 15.0' in answer.text


def test_findings_are_counted_and_not_read(
    story: LedgerStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(ledger: object, feed: str) -> None:
        raise LedgerUnavailable("too many to read")

    monkeypatch.setattr("tallystick.ledger.ledger.Ledger.findings", never)
    assert client(story.dsn).get("/metrics", headers=OPEN).status_code == 200


def test_partitions_make_no_lines(story: LedgerStory) -> None:
    few = client(story.dsn).get("/metrics", headers=OPEN).text
    story.open(dict.fromkeys(range(2, 40), (0, 20)))
    record_look(story.ledger, FEED, snapshot_of(dict.fromkeys(range(40), (0, 20))))
    assert len(client(story.dsn).get("/metrics", headers=OPEN).text.splitlines()) == len(
        few.splitlines()
    )


def test_a_silent_ledger_is_told_without_its_address() -> None:
    dead = "postgresql://nobody:secret-word@127.0.0.1:1/none"
    answer = client(dead).get("/metrics", headers=OPEN)
    assert (answer.status_code, answer.text) == (503, "The ledger does not answer.\n")
    assert "127.0.0.1" not in answer.text


def test_the_token_is_the_password_of_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallystick.web import mounted

    assert mounted._metrics_token() is None
    said = f'{{"conn_type": "generic", "password": "{TOKEN}"}}'
    monkeypatch.setenv("AIRFLOW_CONN_TALLYSTICK_METRICS", said)
    assert mounted._metrics_token() == TOKEN


def test_a_token_that_is_changed_counts_within_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    from tallystick.web import metrics

    asked, now = iter(["first " * 4, "second " * 4]), [0.0]
    monkeypatch.setattr(metrics.time, "monotonic", lambda: now[0])
    token = metrics.MetricsToken(lambda: next(asked))
    now[0] = 100.0
    assert [token.current(), token.current()] == ["first " * 4] * 2
    now[0] = 161.0
    assert token.current() == "second " * 4


def test_the_document_and_the_dashboard_know_every_name_and_no_other(story: LedgerStory) -> None:
    answer = client(story.dsn).get("/metrics", headers=OPEN).text
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", answer, re.MULTILINE))
    told = {f"{name}_total" if kind == "counter" else name for name, kind in types.items()}
    text = (DOCS / "metrics.md").read_text()
    assert set(re.findall(r"^\| `(tallystick_feed_\w+)`", text, re.MULTILINE)) == told
    for name, kind in re.findall(r"^\| `(tallystick_feed_\w+)` \| (\w+) \|", text, re.MULTILINE):
        assert types[name.removesuffix("_total") if kind == "counter" else name] == kind
    dashboard = (DOCS / "metrics-dashboard.json").read_text()
    assert json.loads(dashboard)["panels"]
    assert set(re.findall(r"tallystick_feed_\w+", dashboard)) <= told


def test_the_labels_of_a_feeds_file_are_labels(story: LedgerStory) -> None:
    file = FeedInFile(TOPIC, "/landing", Isolation.READ_COMMITTED, "now", "@daily", "UTC")
    with story.ledger.planning(FEED, TOPIC) as session:
        session.describe(replace(file, labels={"team": 'a "b"', "owner": "Ada"}))

    answer = client(story.dsn).get("/metrics", headers=OPEN).text

    assert r'tallystick_feed_info{feed="orders",owner="Ada",team="a \"b\""} 1.0' in answer


def test_the_alert_also_fires_for_a_feed_that_never_was_complete(ledger_dsn: str) -> None:
    story = LedgerStory(ledger_dsn)
    story.open({0: (0, 20)})
    story.ledger.close()
    alert = re.search(
        r"> 2 \* 3600\n +or \((\w+) unless on\(feed\) (\w+)\)", (DOCS / "metrics.md").read_text()
    )
    assert alert
    fires_with, unless = alert.groups()

    found = figures(client(story.dsn).get("/metrics", headers=OPEN).text)

    assert unless == "tallystick_feed_complete_up_to_timestamp_seconds"
    assert ((fires_with,) in found, (unless,) in found) == (True, False)
