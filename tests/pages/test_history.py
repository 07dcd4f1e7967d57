"""What was wrong with a feed: closed troubles, verdicts, waivers, page by page."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from tallystick.domain.identities import Owner
from tallystick.domain.planning.log_changes import LogChanges
from tallystick.domain.verdicts import Verdict
from tallystick.report.sparks import spark_of
from tallystick.web import history
from tallystick.web.history import history_of
from tests.contract.test_ledger_reports import a_report
from tests.support.ledger_story import (
    FEED,
    MINUTE,
    OWNER,
    TOPIC,
    LedgerStory,
    finding_of,
    snapshot_of,
)
from tests.support.waivers import accept

RUN = Owner("repair_orders/r1")


def closed_one_by_one(story: LedgerStory, count: int) -> None:
    for each in range(count):
        story.ledger.record_findings(FEED, [finding_of(each, each + 1)])
        (found,) = story.ledger.findings(FEED)
        story.ledger.close_findings(FEED, {found.finding_id: f"End {each}."}, run=RUN)


def test_closed_troubles_come_newest_first_with_what_and_who_closed_them(
    story: LedgerStory,
) -> None:
    closed_one_by_one(story, 3)
    found = history_of(story.ledger, FEED, None)
    assert [each.closed_by for each in found.closed] == ["End 2.", "End 1.", "End 0."]
    assert {each.closed_in for each in found.closed} == {RUN}
    assert found.before is None


def test_only_reports_with_another_verdict_are_told(story: LedgerStory) -> None:
    for verdict in ("PROVEN_OK", "PROVEN_OK", "UNKNOWN", "UNKNOWN", "PROVEN_OK"):
        story.ledger.store_report(a_report(verdict=Verdict(verdict)))
    told = history_of(story.ledger, FEED, None).verdicts
    assert [(each.number, each.verdict.value) for each in told] == [
        (5, "PROVEN_OK"),
        (3, "UNKNOWN"),
        (1, "PROVEN_OK"),
    ]


def test_what_is_done_about_a_troubles_waiver_is_one_step(story: LedgerStory) -> None:
    story.ledger.record_findings(FEED, [finding_of(0, 1), finding_of(1, 2)])
    accept(story.ledger, 1)
    accept(story.ledger, 2)
    story.ledger.end_waivers([1, 2], by="ada", reason="no more")
    ended, *approved = history_of(story.ledger, FEED, None).waivers
    assert (ended.step, ended.taken_by, list(ended.finding_ids)) == ("ended", "ada", [1, 2])
    assert {each.step for each in approved} == {"approved"}
    assert {each for step in approved for each in step.finding_ids} == {1, 2}


def test_pages_lose_nothing_and_tell_nothing_twice(
    story: LedgerStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "MOST_OF_A_KIND", 2)
    closed_one_by_one(story, 5)
    one = finding_of(50, 51)
    story.ledger.record_findings(FEED, [one, replace(one, from_offset=60, until_offset=61)])
    before: datetime | None = None
    numbers: list[int | None] = []
    for _ in range(9):
        page = history_of(story.ledger, FEED, before)
        numbers += [each.number for each in page.closed]
        if (before := page.before) is None:
            break
    assert numbers == [5, 4, 3, 2, 1]


def test_the_last_runs_say_what_waited_what_was_landed_and_nothing_that_a_look_cannot_tell(
    story: LedgerStory,
) -> None:
    story.open({0: (0, 0)})
    for reach in (10, 30, 30):
        first = story.account().frontier
        ranges = [(0, first, reach)] if first < reach else []
        batches = [story.batch_of(*ranges)] if ranges else []
        with story.ledger.planning(FEED, TOPIC) as session:
            session.record_look(snapshot_of({0: (0, reach + 5)}), ())
            session.freeze(None, batches, (), owner=OWNER, lease=MINUTE)
        for each in batches:
            attempt = story.begin(each.batch_id)
            story.verify(attempt)
            story.ledger.commit(attempt)
    (runs,) = story.ledger.recent_runs([FEED], most=2).values()
    assert [(each.lag, each.rows) for each in runs] == [(25, 20), (5, 0)]
    story.change(LogChanges(), {0: (0, 40)}, topic_id="another")
    with story.ledger.planning(FEED, TOPIC) as session:
        session.record_look(snapshot_of({0: (0, 9)}, topic_id="another"), ())
        session.freeze(None, [], (), owner=OWNER, lease=MINUTE)
    (runs,) = story.ledger.recent_runs([FEED], most=9).values()
    assert [each.lag for each in runs] == [15, 25, 5, None]
    drawn = spark_of([each.lag for each in runs])
    assert drawn
    assert drawn.path.count("M") == 3
    assert drawn.about == "unknown, the newest of 4; from 5 to 25"
