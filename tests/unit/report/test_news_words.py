"""News in words: what is told again, and whose feed it is."""

from __future__ import annotations

from datetime import UTC, datetime

from tallystick.domain.report.finding_part import finding_part
from tallystick.domain.report.news import News
from tallystick.domain.verdicts import Verdict
from tallystick.report.news_words import words_of
from tests.support.ledger_story import finding_of

SIX = datetime(2026, 11, 1, 6, tzinfo=UTC)


def test_a_reminder_says_what_still_stands_and_whose_feed_it_is() -> None:
    loss = Verdict.PROVEN_LOSS
    still = [finding_part(finding_of(1, 2))]
    news = News([], [], loss, loss, None, None, still=still, still_late=SIX, asked=[])
    labels = {"team": "<b>", "runbook": "https://wiki/?a=1&b='2'"}
    words = words_of("orders", news, "https://airflow/tallystick", labels)
    assert words.subject == "Tallystick orders: still not complete, 1 still open"
    assert "Still open: " in words.text
    assert "2026-11-01T06:00:00+00:00 is still not complete." in words.text
    assert words.text.endswith("Labels\nteam: <b>\nrunbook: https://wiki/?a=1&b='2'")
    assert "team: &lt;b&gt;" in words.html
    assert words.html.endswith(
        '<br><a href="https://wiki/?a=1&amp;b=&#x27;2&#x27;">'
        "https://wiki/?a=1&amp;b=&#x27;2&#x27;</a></p>"
    )
