"""The page's first sentences, of all feeds: "Nothing is wrong", "Yesterday is complete"."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from tallystick.domain.identities import FeedName
from tallystick.domain.report.completeness import CompleteBy
from tallystick.domain.verdicts import Verdict
from tallystick.web import reading
from tests.contract.test_ledger_reports import a_report
from tests.pages.test_answers import looked
from tests.pages.test_signs import GONE, STUCK, WHOLE, dags
from tests.support.builders import FEED, NOON
from tests.support.ledger_story import LedgerStory, finding_of
from tests.support.waivers import accept

HOUR = timedelta(hours=1)
MIDNIGHT = NOON.replace(hour=0)


# --- "Nothing is wrong" -----------------------------------------------------------------------


def test_a_feed_whose_storage_was_never_asked_is_not_proven(story: LedgerStory) -> None:
    """`verdict_now`: at least UNKNOWN where none could say all. A reconcile at L1 lists no file."""
    story.open({0: (0, 5)})
    story.committed((0, 0, 5))
    looked(story, 5)
    now = datetime.now(UTC)
    story.ledger.store_report(a_report(verdict=Verdict.PROVEN_OK, taken_at=now, deepest="L1"))

    [answer] = reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), now)

    assert (answer.verdict, answer.storage_heard_at) == (Verdict.UNKNOWN, None)


def test_a_retired_feed_has_no_plan_to_begin(story: LedgerStory) -> None:
    """Its file is still there: "It has no plan yet. Trigger ingest_x." would be refused."""
    story.open({0: (0, 0)})
    story.ledger.retire(FEED, reason="over", by="ada")
    answers = reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), NOON)
    ended = story.ledger.ended_feeds()

    found = reading.in_short(answers, {FEED: dags(deadline=STUCK)}, {}, NOON, ended)

    assert [(each.said, each.since) for each in found.signs] == [("It was ended", ended[FEED])]
    assert (found.known, found.yesterday_open) == (1, []), "nothing more of it will be complete"
    assert not reading.in_short(answers, {FEED: dags(**GONE)}, {}, NOON, ended).signs


def test_a_feed_that_is_no_more_is_not_counted_among_those_in_order() -> None:
    """ "Nothing is wrong in 2 feeds", and there is one."""
    known = {FeedName(WHOLE.feed): dags(), FeedName("gone"): dags(**GONE)}
    found = reading.in_short([WHOLE], known, {}, NOON)
    assert (found.signs, found.known) == ([], 1)


# --- "Yesterday is complete" ------------------------------------------------------------------


def test_yesterday_is_not_complete_in_all_while_one_has_not_begun() -> None:
    found = reading.in_short([WHOLE], {FeedName("begins"): dags()}, {}, NOON)

    assert found.yesterday_open == ["begins"]


def test_what_was_told_complete_is_not_shown_over_a_loss_that_was_found_since(
    story: LedgerStory,
) -> None:
    """A run by the command line, or one that is killed, tells the page nothing."""
    story.open({0: (0, 5)})
    story.committed((0, 0, 5))
    looked(story, 5)
    story.ledger.store_report(a_report(verdict=Verdict.PROVEN_OK, complete_up_to=NOON))
    story.ledger.tell_complete(FEED, NOON, CompleteBy.READABLE, story.ledger.clock())
    story.ledger.record_findings(FEED, [finding_of(0, 5)])
    answers = reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), NOON)

    found = reading.in_short(answers, {}, {}, NOON)

    assert found.yesterday_open == [FEED]
    until = datetime.now(UTC) + timedelta(seconds=2)
    accept(story.ledger, 1, until)
    story.ledger.store_report(a_report(verdict=Verdict.PROVEN_OK, complete_up_to=NOON))
    story.ledger.tell_complete(FEED, NOON, CompleteBy.READABLE, story.ledger.clock())
    answers = reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), NOON)
    assert reading.in_short(answers, {}, {}, NOON).yesterday_open == [], "two people accept it"
    time.sleep((until - datetime.now(UTC)).total_seconds() + 0.1)
    answers = reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), NOON)
    assert reading.in_short(answers, {}, {}, NOON).yesterday_open == [FEED], "no more"


def test_a_finding_that_was_known_when_it_was_told_is_told_in_it() -> None:
    told = WHOLE.but(complete_told_at=NOON, failing_at=NOON - HOUR)
    assert reading.in_short([told], {}, {}, NOON).yesterday_open == []


def test_a_daily_feed_of_another_time_zone_is_complete_once_its_day_is() -> None:
    """Of `0 0 * * *` in Berlin the newest window that is over ends at 23:00 UTC, or 22:00."""
    daily = WHOLE.but(
        complete_up_to=MIDNIGHT - HOUR,
        complete_by=CompleteBy.RECORD_TIME,
        border_at=MIDNIGHT - HOUR,
    )
    assert reading.in_short([daily], {FEED: dags()}, {}, NOON).yesterday_open == []

    for changed in (
        {"looked_at": MIDNIGHT - HOUR},  # who knows which windows were over since
        {"border_at": MIDNIGHT},
        {"border_at": None},
        {"complete_up_to": MIDNIGHT - 2 * HOUR},
        {"complete_by": CompleteBy.READABLE},
    ):
        open_feeds = reading.in_short([daily.but(**changed)], {}, {}, NOON).yesterday_open
        assert open_feeds == [FEED], changed


def test_an_hourly_feed_is_complete_once_the_windows_before_midnight_are() -> None:
    hourly = WHOLE.but(complete_up_to=MIDNIGHT, complete_by=CompleteBy.RECORD_TIME, border_at=NOON)
    assert reading.in_short([hourly], {}, {}, NOON).yesterday_open == []
