"""`notify` and `complete_within` in a feed's file: what is accepted, and the words for the rest."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from tallystick.alerts.notifiers import notifier_of, notifier_problems, recipient_of, wish_of
from tallystick.domain.verdicts import Verdict
from tallystick.settings.feed import NotifierSettings, Route
from tallystick.settings.feeds import load_feed, read_feeds

SMTP = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"
HEAD = """\
feed: orders
source: {topic: orders}
schedule: {cron: "0 * * * *", start_date: 2026-11-01}
target: {root: /data/landing}
"""
A_CLASS = "a notifier's class such as airflow.providers.smtp.notifications.smtp.SmtpNotifier"
IMPORTED = "a class below airflow.sdk.BaseNotifier that can be imported, and its arguments"


def problems_of(folder: Path, more: str) -> list[str]:
    (folder / "orders.yaml").write_text(HEAD + more)
    found = read_feeds(folder, notifier_problems).problems
    return [str(each).partition("orders.yaml")[2] for each in found]


def test_a_feed_that_says_nothing_tells_nobody(tmp_path: Path) -> None:
    assert problems_of(tmp_path, "") == []
    feed = load_feed(tmp_path, "orders")
    assert (feed.notify, feed.complete_within) == ((), None)


def test_what_is_right_is_read_and_can_be_made(tmp_path: Path) -> None:
    more = (
        f"complete_within: 2h\nnotify:\n  - notifier: {SMTP}\n    arguments:\n"
        '      to: [a@example.org]\n      subject: "{{ news.subject }}"\n      smtp_conn_id: mail\n'
    )
    assert problems_of(tmp_path, more) == []
    feed = load_feed(tmp_path, "orders")
    assert feed.complete_within == timedelta(hours=2)
    made = notifier_of(feed.notify[0])
    assert (made.to, made.subject, made.smtp_conn_id) == (
        ["a@example.org"],
        "{{ news.subject }}",
        "mail",
    )


WRONG = [
    # (the rest of the file, how the problem begins after the file's name)
    ("complete_within: soon", ":5: complete_within: 'soon' is not accepted"),
    ("notify: me", ":5: notify: 'me' is not accepted; accepted: a list of notifiers"),
    ("notify: [{}]", f":5: notify.0.notifier: missing; accepted: {A_CLASS}"),
    ("notify:\n- notifier: x y",
     f":6: notify.0.notifier: 'x y' is not accepted; accepted: {A_CLASS}"),
    ("notify:\n- notifer: a.B\n  notifier: a.B",
     ":6: notify.0.notifer: unknown key; nearest known key: notifier"),
    (f"notify:\n- notifier: {SMTP}\n  arguments: {{to: a, password: secret-word}}",
     ":7: notify.0.arguments: a mapping is not accepted: it looks like a secret: name an Airflow"
     " connection that holds it; accepted: "),
    (f"notify:\n- notifier: {SMTP}\n  arguments: {{to: a, x: [{{api_key: secret-word}}]}}",
     ":7: notify.0.arguments: a mapping is not accepted: it looks like a secret"),
    ("notify:\n- notifier: a.B\n  when:\n    verdict: [LOSS]",
     ":8: notify.0.when.verdict.0: 'LOSS' is not accepted;"
     " accepted: SUSPECTED, UNKNOWN, PROVEN_DUP, PROVEN_LOSS, LATE, REQUEST, in a list"),
    ("notify:\n- notifier: a.B\n  when: {labels: {tier: 1}}", ":7: notify.0.when.labels.tier: 1 is"
     " not accepted: it does not read as text, put it in quotes"),
    ("notify:\n- notifier: a.B\n  remind: daily", ":7: notify.0.remind: 'daily' is not accepted"),
    ("notify:\n- notifier: no.such.Notifier",
     ":6: notify.0.notifier: 'no.such.Notifier' is not accepted: it can't be imported: No module"),
    ("notify:\n- notifier: json.Nothing",
     ":6: notify.0.notifier: 'json.Nothing' is not accepted: it can't be imported: module 'json'"),
    ("notify:\n- notifier: json.JSONDecoder",
     ":6: notify.0.notifier: 'json.JSONDecoder' is not accepted: it is no notifier of Airflow's;"
     f" accepted: {IMPORTED}"),
    (f"notify:\n- notifier: {SMTP}",
     ":5: notify.0.arguments: is not accepted: missing a required argument: 'to'"),
]  # fmt: skip


@pytest.mark.parametrize(("more", "problem"), WRONG)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, more: str, problem: str) -> None:
    (found,) = problems_of(tmp_path, more)
    assert found.startswith(problem)
    assert "secret-word" not in found


def test_another_argument_is_another_recipient() -> None:
    first = NotifierSettings(notifier="a.B", arguments={"to": "a", "cc": "b"})
    same = NotifierSettings(notifier="a.B", arguments={"cc": "b", "to": "a"})
    assert recipient_of(first) == recipient_of(same)
    others = [
        NotifierSettings(notifier="a.C", arguments=first.arguments),
        NotifierSettings(notifier="a.B", arguments={"to": "a", "cc": "c"}),
        first.model_copy(update={"when": Route(verdict=("PROVEN_LOSS",))}),
    ]
    assert len({recipient_of(each) for each in (first, *others)}) == 4
    elsewhere = {"when": Route(labels={"team": "a"}), "remind": timedelta(hours=6)}
    assert recipient_of(first.model_copy(update=elsewhere)) == recipient_of(first)


def test_a_route_that_names_all_verdicts_also_hears_of_a_waiver(tmp_path: Path) -> None:
    more = (
        f"notify:\n- notifier: {SMTP}\n  arguments: {{to: a}}\n- notifier: {SMTP}\n  remind: 6h\n"
        "  arguments: {to: b}\n  when: {verdict: [PROVEN_LOSS, PROVEN_DUP]}\n"
    )
    assert problems_of(tmp_path, more) == []
    first, second = map(wish_of, load_feed(tmp_path, "orders").notify)
    assert (first.verdicts, first.is_told_late, first.remind_after) == (None, True, None)
    assert second.verdicts == {Verdict.PROVEN_LOSS, Verdict.PROVEN_DUP}
    assert (second.is_told_late, second.remind_after) == (False, timedelta(hours=6))
