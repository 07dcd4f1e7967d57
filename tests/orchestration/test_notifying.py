"""Alerts as people get them: Airflow's own SMTP notifier, and a real SMTP server on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller

from tallystick.errors import SourceRefused
from tests.orchestration.conftest import parsed_dags
from tests.orchestration.stage import Stage, run
from tests.support.busy import BUSY_SECONDS
from tests.support.free_port import free_port

pytestmark = [
    pytest.mark.usefixtures("airflow_database", "_short_polls"),
    # Airflow's own: it runs a small api-server in this process.
    pytest.mark.filterwarnings("default"),
]

EARLY = timedelta(seconds=7)
"""Windows before the scripted broker's present."""
NOTIFIER = """
notify:
  - notifier: airflow.providers.smtp.notifications.smtp.SmtpNotifier
    arguments:
      to: [data@example.org]
      from_email: tallystick@example.org
      subject: "{{ news.subject }}"
      html_content: "{{ news.html }}"
      smtp_conn_id: our_mail
"""


@dataclass
class Mailbox:
    """What the server has taken; refuses mail while it is told to."""

    letters: list[Any] = field(default_factory=list)
    refusals: int = 0

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.refusals:
            self.refusals -= 1
            return "554 not now"
        self.letters.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 taken"

    @property
    def subjects(self) -> list[str]:
        return [str(each["Subject"]) for each in self.letters]

    def text(self, index: int) -> str:
        return str(self.letters[index].get_body(("html",)).get_content())


@pytest.fixture
def mailbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mailbox]:
    found = Mailbox()
    port = free_port()
    server = Controller(found, hostname="127.0.0.1", port=port, ready_timeout=BUSY_SECONDS)
    server.start()
    try:
        connection = {
            "conn_type": "smtp",
            "host": "127.0.0.1",
            "port": port,
            "extra": {"disable_ssl": True, "disable_tls": True, "retry_limit": 1},
        }
        monkeypatch.setenv("AIRFLOW_CONN_OUR_MAIL", json.dumps(connection))
        yield found
    finally:
        server.stop()


def dags_with(monkeypatch: pytest.MonkeyPatch, folder: Path, more: str) -> Any:
    """The DAGs of a feed whose file says more than the others."""
    file = Path(__file__).parent / "feeds" / "orders.yaml"
    (folder / "feeds").mkdir()
    (folder / "feeds" / "orders.yaml").write_text(file.read_text() + more)
    monkeypatch.setenv("TALLYSTICK_FEEDS", str(folder / "feeds"))
    return parsed_dags()


def _forget_events() -> None:
    """Other tests' events are of the same asset."""
    from airflow import settings
    from airflow.models.asset import AssetEvent
    from sqlalchemy import delete

    session = settings.Session()
    session.execute(delete(AssetEvent))
    session.commit()


def _make_event(uri: str, extra: dict[str, str]) -> None:
    from airflow import settings
    from airflow.models.asset import AssetEvent, AssetModel
    from sqlalchemy import select

    session = settings.Session()
    asset = session.scalars(select(AssetModel).where(AssetModel.uri == uri)).one()
    session.add(AssetEvent(asset_id=asset.id, extra=extra))
    session.commit()


def _lose_a_file(stage: Stage) -> None:
    next(stage.story.directory.joinpath("landing").rglob("*.parquet")).unlink()


def test_people_hear_once_of_what_is_new_and_once_that_it_is_over(
    stage: Stage, mailbox: Mailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dags = dags_with(monkeypatch, tmp_path, NOTIFIER)
    for dag in ("ingest_orders", "reconcile_orders"):
        calm = run(dags[dag])
        assert (calm.state, calm.telling["notify"]) == ("success", "success")
    assert mailbox.subjects == []
    _lose_a_file(stage)
    for _ in range(2):
        red = run(dags["reconcile_orders"])
        assert (red.state, red.tasks["judge"], red.telling["notify"]) == (
            "failed",
            "failed",
            "success",
        )
    assert mailbox.subjects == ["Tallystick orders: PROVEN_LOSS (was PROVEN_OK), 1 new"]
    assert mailbox.letters[0]["To"] == "data@example.org"
    letter = " ".join(mailbox.text(0).replace("<br>", " ").split())
    number = stage.story.named()[0]
    assert re.search(r"New: PROVEN_LOSS, A8 committed file missing .finding", letter)
    assert re.search(r"\d+ rows .* are missing\.", letter)
    assert f"tallystick repair orders {number}" in letter
    assert f'/tallystick/findings/{number}">' in letter
    assert '/tallystick/feeds/orders">' in letter
    assert "NUMBER" not in letter
    assert "<pre>" not in letter
    dry = run(dags["repair_orders"])
    assert (dry.telling["notify"], len(mailbox.letters)) == ("skipped", 1)
    assert (
        run(dags["repair_orders"], dry_run=False, findings=stage.named).telling["notify"]
        == "success"
    )
    assert run(dags["reconcile_orders"]).telling["notify"] == "success"
    assert mailbox.subjects[1:] == ["Tallystick orders: PROVEN_OK (was PROVEN_LOSS), 1 over"]


def test_people_hear_by_label_and_verdict_whose_feed_it_is(
    stage: Stage, mailbox: Mailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def route(to: str, when: str) -> str:
        mine = NOTIFIER.removeprefix("\nnotify:\n").replace("data@", f"{to}@")
        return f"{mine}    when: {when}\n"

    more = (
        "\nlabels: {team: <data>, runbook: 'https://wiki.example.org/a?b=1&c=2'}\nnotify:\n"
        + route("loss", "{verdict: [PROVEN_LOSS], labels: {team: <data>}}")
        + route("unknown", "{verdict: [UNKNOWN]}")
        + route("others", "{labels: {team: other}}")
    )
    dags = dags_with(monkeypatch, tmp_path, more)
    run(dags["ingest_orders"])
    _lose_a_file(stage)
    assert run(dags["reconcile_orders"]).telling["notify"] == "success"
    assert [each["To"] for each in mailbox.letters] == ["loss@example.org"]
    assert "team: &lt;data&gt;" in mailbox.text(0)
    assert '<a href="https://wiki.example.org/a?b=1&amp;c=2">' in mailbox.text(0)
    assert {*dags["repair_orders"].tags} == {"tallystick", "repair", "team:<data>"}


def test_a_mail_server_that_refuses_makes_no_run_red_and_loses_no_news(
    stage: Stage, mailbox: Mailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dags = dags_with(monkeypatch, tmp_path, NOTIFIER)
    run(dags["ingest_orders"])
    run(dags["reconcile_orders"])
    _lose_a_file(stage)
    mailbox.refusals = 100
    dags["reconcile_orders"].get_task("judge").work = lambda *_: None
    found = run(dags["reconcile_orders"])
    assert (found.state, found.telling["notify"], mailbox.letters) == ("success", "failed", [])
    mailbox.refusals = 0
    assert run(dags["ingest_orders"]).telling["notify"] == "success"
    assert len(mailbox.letters) == 1


def test_hostile_names_are_text_in_a_letter_and_one_line_in_its_subject() -> None:
    from tallystick.report.news_words import Block, NewsWords

    bad = "<script>alert(1)</script>"
    words = NewsWords("orders", "s", [Block(bad, [bad], bad)], "x?a=1&b=2")
    assert "<script>" not in words.html
    assert "a=1&amp;b=2" in words.html


def test_a_window_that_is_not_complete_in_time_is_red_and_told(
    stage: Stage, mailbox: Mailbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dags = dags_with(monkeypatch, tmp_path, NOTIFIER + "complete_within: 2h\n")
    late = run(dags["deadline_orders"])
    assert (late.state, late.tasks, late.telling) == (
        "failed",
        {"complete": "failed"},
        {"notify": "success"},
    )
    assert mailbox.subjects == ["Tallystick orders: not complete in time"]


def test_a_window_that_is_complete_ends_its_wait(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dags = dags_with(monkeypatch, tmp_path, "complete_within: 2h\n")
    run(dags["ingest_orders"])
    found = run(dags["deadline_orders"], step=EARLY)
    assert (found.state, found.tasks, found.telling) == ("success", {"complete": "success"}, {})


def test_the_event_of_a_complete_window_comes_once(stage: Stage, dags: Any) -> None:
    _forget_events()
    first = run(dags["ingest_orders"], step=EARLY)
    assert first.telling == {"announce_complete": "success"}
    (told,) = first.completed
    assert set(told) == {
        "window_end", "window_end_before", "complete_up_to", "storage_heard_at", "late_rows",
        "accepted",
    }  # fmt: skip
    assert told["window_end"] <= told["complete_up_to"]
    again = run(dags["reconcile_orders"], step=EARLY)
    assert (again.telling, again.completed) == ({"announce_complete": "skipped"}, [])


@pytest.mark.parametrize("extra", [{}, {"window_end": "soon"}, {"window_end": "2026-11-01T12:00"}])
def test_an_event_that_somebody_makes_by_hand_brings_no_window_again(
    stage: Stage, dags: Any, extra: dict[str, str]
) -> None:
    _forget_events()
    assert run(dags["ingest_orders"], step=EARLY).completed
    _make_event("tallystick://orders/complete", extra)
    again = run(dags["reconcile_orders"], step=EARLY)
    assert (again.telling, again.completed) == ({"announce_complete": "skipped"}, [])


def test_no_event_tells_of_a_window_that_is_short(stage: Stage, dags: Any) -> None:
    stage.failures[1] = [SourceRefused("topic orders", "not authorised")]
    _forget_events()
    found = run(dags["ingest_orders"], step=EARLY)
    assert (found.state, found.telling, found.completed) == (
        "failed",
        {"announce_complete": "skipped"},
        [],
    )


def test_a_dry_run_tells_nobody(stage: Stage, dags: Any) -> None:
    assert run(dags["ingest_orders"], dry_run=True).telling == {"announce_complete": "skipped"}
