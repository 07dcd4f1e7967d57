"""Who is told of a feed: at least once, never twice for the same news, whoever dies or fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tallystick.domain.identities import FeedName
from tallystick.domain.report.news import News, Wish
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.waivers import WaiverWish
from tallystick.ledger.ledger import Ledger
from tallystick.settings.feed import Feed
from tallystick.workflows.telling import Recipient, tell
from tests.support.ledger_story import finding_of
from tests.support.story import Story, a_feed, a_landed_story
from tests.support.waivers import accept

ADA, BEN = "a" * 16, "b" * 16
FEED = FeedName("orders")


class Post:
    """What was sent, and to whom; fails, or dies, as a test wants."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str]] = []
        self.trouble: dict[str, BaseException] = {}
        self.before_end: Callable[[], object] = lambda: None

    def to(self, recipient: str) -> Callable[[News], None]:
        def send(news: News) -> None:
            if error := self.trouble.pop(recipient, None):
                raise error
            new = [str(each.number) for each in news.opened]
            over = [f"-{each.number}" for each in news.over]
            late = ["late"] if news.late else ["in time"] if news.late_no_more else []
            late += [f"again {each.number}" for each in news.still]
            asked = [f"{each.wish.asked_by} asks" for each in news.asked]
            self.sent.append((recipient, " ".join(new + over + late + asked)))
            self.before_end()

        return send

    def take(self) -> list[tuple[str, str]]:
        taken, self.sent = self.sent, []
        return taken


@pytest.fixture
def place(ledger_dsn: str, tmp_path: Path) -> Iterator[tuple[Story, Ledger, Post]]:
    story = a_landed_story(ledger_dsn, tmp_path, 10)
    with closing(Ledger(ledger_dsn)) as ledger:
        yield story, ledger, Post()


Place = tuple[Story, Ledger, Post]


ONCE, HOURLY = Wish(), Wish(remind_after=timedelta(hours=1))


def _told(place: Place, *recipients: str, feed: Feed | None = None, wish: Wish = ONCE) -> list[str]:
    story, ledger, post = place
    with closing(Ledger(story.dsn)) as turns:
        to = {each: Recipient(post.to(each), wish) for each in recipients or (ADA,)}
        return [str(each) for each in tell(feed or a_feed(), turns, ledger, to)]


def _found(place: Place, *spans: tuple[int, int]) -> list[int]:
    _, ledger, _ = place
    found: list[Finding] = [finding_of(*each) for each in spans]
    ledger.record_findings(FEED, found)
    return [each.finding_id for each in ledger.findings(FEED)]


def test_news_are_told_once_to_each(place: Place) -> None:
    _, ledger, post = place
    _told(place)
    assert post.take() == []
    first, second = _found(place, (1, 2), (4, 6))
    for _ in range(2):
        assert _told(place, ADA, BEN) == []
    assert post.take() == [(ADA, f"{first} {second}"), (BEN, f"{first} {second}")]
    ledger.close_findings(FEED, {first: "It was landed again."})
    for _ in range(2):
        _told(place, ADA, BEN)
    assert post.take() == [(ADA, f"-{first}"), (BEN, f"-{first}")]


def test_what_came_and_went_in_between_is_told(place: Place) -> None:
    _, ledger, post = place
    _told(place)
    (number,) = _found(place, (1, 2))
    ledger.close_findings(FEED, {number: "It was landed again."})
    _told(place)
    assert post.take() == [(ADA, f"-{number}")]


def test_who_comes_later_hears_nothing_of_what_was_over(place: Place) -> None:
    _, ledger, post = place
    first, second = _found(place, (1, 2), (4, 6))
    ledger.close_findings(FEED, {second: "It was landed again."})
    for _ in range(2):
        _told(place)
    assert post.take() == [(ADA, f"{first}")]


def test_a_task_that_dies_after_sending_sends_again(place: Place) -> None:
    _, _, post = place
    (number,) = _found(place, (1, 2))

    def die() -> None:
        post.before_end = lambda: None
        raise KeyboardInterrupt

    post.before_end = die
    with pytest.raises(KeyboardInterrupt):
        _told(place)
    _told(place)
    _told(place)
    assert post.take() == [(ADA, str(number))] * 2


def test_who_cannot_be_reached_is_told_later_and_keeps_nothing_from_others(place: Place) -> None:
    _, _, post = place
    (number,) = _found(place, (1, 2))
    post.trouble[ADA] = OSError("the server is away")
    assert _told(place, ADA, BEN) == ["the server is away"]
    assert post.take() == [(BEN, str(number))]
    assert _told(place, ADA, BEN) == []
    assert post.take() == [(ADA, str(number))]


def test_two_tasks_at_once_tell_it_once(place: Place) -> None:
    _, _, post = place
    (number,) = _found(place, (1, 2))
    _at_once(place)
    assert post.take() == [(ADA, str(number))]


def test_two_tasks_at_once_remind_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    _, ledger, post = place
    (number,) = _found(place, (1, 2))
    _told(place)
    post.take()
    later = ledger.clock() + timedelta(hours=1)
    monkeypatch.setattr(Ledger, "clock", lambda _: later)
    _told(place)
    assert post.take() == [], "only who wants it is reminded"
    _at_once(place)
    assert post.take() == [(ADA, f"again {number}")]


def _at_once(place: Place) -> None:
    """Two tasks tell, and the second one comes while the first one sends."""
    _, _, post = place
    is_sending, may_end = threading.Event(), threading.Event()

    def linger() -> None:
        is_sending.set()
        may_end.wait(20)

    post.before_end = linger
    threads = [
        threading.Thread(target=_told, args=(place,), kwargs={"wish": HOURLY}) for _ in range(2)
    ]
    threads[0].start()
    assert is_sending.wait(20)
    threads[1].start()
    threads[1].join(0.5)
    assert threads[1].is_alive()
    may_end.set()
    for each in threads:
        each.join(20)


def test_what_two_people_accept_is_over_until_it_is_open_again(place: Place) -> None:
    _, ledger, post = place
    (number,) = _found(place, (1, 2))
    _told(place)
    accept(ledger, number)
    _told(place)
    ledger.record_findings(FEED, [finding_of(1, 2, note="another evidence")])
    _told(place)
    assert post.take() == [(ADA, str(number)), (ADA, f"-{number}"), (ADA, str(number))]


def test_a_request_for_a_waiver_is_told_once_while_it_waits(place: Place) -> None:
    _, ledger, post = place
    (number,) = _found(place, (1, 2))
    _told(place)
    found = ledger.finding(number)
    assert found
    ends = datetime(2199, 1, 1, tzinfo=UTC)
    wish = WaiverWish(
        finding_id=number, reason="known", asked_by="ada", expires_at=ends, digest=found.digest
    )
    ledger.ask_for_waivers([wish])
    for _ in range(2):
        _told(place)
    ledger.approve_waivers(
        {each.wish.finding_id: each.number for each in ledger.waiting_requests()[FEED]}, by="ben"
    )
    _told(place)
    assert post.take() == [(ADA, str(number)), (ADA, "ada asks"), (ADA, f"-{number}")]


def test_a_window_that_is_late_is_told_when_that_begins_and_when_it_is_over(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support.scripted_broker import NOW

    _, _, post = place
    feed = a_feed().model_copy(update={"complete_within": timedelta(hours=2)})

    def at(hours: float) -> None:
        monkeypatch.setattr(Ledger, "clock", lambda _: NOW + timedelta(hours=hours))
        for _ in range(2):
            _told(place, feed=feed)

    at(2.4)  # 12:00 is complete, and 13:00 has time until 15:00
    assert post.take() == []
    at(2.6)
    assert post.take() == [(ADA, "late")]
    at(4)
    assert post.take() == []
    at(2)
    assert post.take() == [(ADA, "in time")]


def test_a_feed_that_was_never_planned_is_late_too(place: Place) -> None:
    _, _, post = place
    parts: dict[str, Any] = {"name": "other", "complete_within": timedelta(hours=2)}
    _told(place, feed=a_feed().model_copy(update=parts))
    assert post.take() == [(ADA, "late")]


def test_a_reminder_that_could_not_be_sent_is_sent_by_the_next_task(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ledger, post = place
    (number,) = _found(place, (1, 2))
    _told(place)
    later = ledger.clock() + timedelta(hours=1)
    monkeypatch.setattr(Ledger, "clock", lambda _: later)
    post.trouble[ADA] = OSError("the server is away")
    assert _told(place, wish=HOURLY) == ["the server is away"]
    _told(place, wish=HOURLY)
    assert post.take() == [(ADA, str(number)), (ADA, f"again {number}")]
