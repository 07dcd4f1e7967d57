"""Attacks on the page's first sentences: each failing test is a hole in the rule it names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tallystick.domain.identities import FeedName
from tallystick.domain.report.completeness import CompleteBy
from tallystick.domain.rules.waivers import WaiverWish
from tallystick.domain.verdicts import Verdict
from tallystick.web import reading
from tallystick.web.signs import signs_of
from tests.contract.test_ledger_reports import a_report
from tests.pages.test_answers import looked
from tests.pages.test_signs import GONE, REPORT, WHOLE, dags
from tests.support.builders import FEED, NOON
from tests.support.ledger_story import LedgerStory, finding_of

HOUR = timedelta(hours=1)
MIDNIGHT = NOON.replace(hour=0)


# --- "Nothing is wrong" -----------------------------------------------------------------------


def test_a_run_that_was_due_long_ago_and_never_began_is_a_sign() -> None:
    """The scheduler is dead: it tells nothing, and no run of ours tells that it is."""
    dead = {kind: {"next_at": NOON - 30 * HOUR} for kind in ("ingest", "reconcile", "deadline")}
    assert signs_of(FEED, WHOLE, dags(**dead), (), NOON)


@pytest.mark.parametrize("gone", ["ingest", "reconcile"])
def test_one_dag_of_a_feed_that_is_gone_is_a_sign(gone: str) -> None:
    known = dags(**{gone: {"is_stale": True}})
    old = WHOLE.but(report=replace(REPORT, taken_at=NOON - 240 * HOUR))
    assert signs_of(FEED, old if gone == "reconcile" else WHOLE, known, (), NOON)


def test_a_feed_whose_storage_was_never_asked_is_not_proven(story: LedgerStory) -> None:
    """`verdict_now`: at least UNKNOWN where none could say all. A reconcile at L1 lists no file."""
    story.open({0: (0, 5)})
    story.committed((0, 0, 5))
    looked(story, 5)
    now = datetime.now(UTC)
    story.ledger.store_report(a_report(verdict=Verdict.PROVEN_OK, taken_at=now, deepest="L1"))

    [answer] = reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), now)

    assert answer.verdict is Verdict.UNKNOWN


def test_a_retired_feed_has_no_plan_to_begin(story: LedgerStory) -> None:
    """Its file is still there: "It has no plan yet. Trigger ingest_x." would be refused."""
    story.open({0: (0, 0)})
    story.ledger.retire(FEED, reason="over", by="ada")
    answers = reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), NOON)

    found = reading.in_short(answers, {FEED: dags()}, {}, NOON)

    assert "It has no plan yet" not in [each.said for each in found.signs]


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
    story.ledger.record_findings(FEED, [finding_of(0, 5)])
    answers = reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), NOON)

    found = reading.in_short(answers, {}, {}, NOON)

    assert found.yesterday_open == [FEED]


def test_a_daily_feed_of_another_time_zone_is_complete_once_its_day_is() -> None:
    """Of `0 0 * * *` in Berlin the newest window that is over ends at 23:00 UTC, or 22:00."""
    daily = WHOLE.but(complete_up_to=MIDNIGHT - HOUR, complete_by=CompleteBy.RECORD_TIME)
    assert reading.in_short([daily], {FEED: dags()}, {}, NOON).yesterday_open == []


def test_a_request_that_is_void_by_its_evidence_waits_for_nobody(story: LedgerStory) -> None:
    """`waiting_requests`: "the requests that can still be approved"."""
    story.open({0: (0, 5)})
    story.ledger.record_findings(FEED, [finding_of(0, 5)])
    finding = story.finding(1)
    until = datetime.now(UTC) + HOUR
    wish = WaiverWish(
        finding_id=1, reason="known", asked_by="ada", expires_at=until, digest=finding.digest
    )
    story.ledger.ask_for_waiver(wish)
    story.ledger.record_findings(FEED, [finding_of(0, 5, more="worse")])
    request, found = story.ledger.waiver_request(1), story.ledger.finding(1)
    assert request
    assert found
    may = found.state.value == "open" and request.may_be_approved(found.digest)

    assert bool(story.ledger.waiting_requests().get(FEED)) == may
