"""What pages are made of: heads of feeds, newest batches, what one run has done."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tallystick.domain.batches.states import BatchState, HoleClass
from tallystick.domain.identities import FeedName
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.verdicts import Verdict
from tallystick.errors import LedgerUnavailable
from tallystick.ledger.ledger import Ledger
from tallystick.ledger.texts import storable
from tests.contract.test_ledger_reports import a_report
from tests.support.busy import BUSY_SECONDS
from tests.support.ledger_story import (
    FEED,
    HOUR,
    OWNER,
    RIVAL,
    LedgerStory,
    finding_of,
    snapshot_of,
)
from tests.support.looks import record_look
from tests.support.waivers import accept


def test_a_feeds_head_has_its_newest_report_look_and_runs(story: LedgerStory) -> None:
    story.open({0: (0, 10), 1: (0, 20)})
    story.committed((0, 0, 10), (1, 0, 15))
    record_look(story.ledger, FEED, snapshot_of({0: (0, 10), 1: (0, 20)}))
    story.ledger.store_report(a_report())
    number = story.ledger.store_report(a_report(5, verdict=Verdict.PROVEN_OK), OWNER)

    [head] = story.ledger.feed_heads(most_runs=5)

    assert (head.feed, head.topic, head.partitions, head.lag) == (FEED, "orders", 2, 5)
    assert head.report
    assert (head.report.number, head.report.verdict) == (number, Verdict.PROVEN_OK)
    assert [(each.owner, each.batches, each.published, each.rows) for each in head.runs] == [
        (OWNER, 1, 0, 25)
    ]
    assert list(story.ledger.feed_heads(FEED, most_runs=5)) == [head]
    assert not story.ledger.feed_heads(FeedName("nobody"), most_runs=5)


@pytest.mark.parametrize(
    "look",
    [
        snapshot_of({0: (0, 10)}, topic_id="another"),
        replace(snapshot_of({0: (0, 10)}), leaderless=frozenset({1})),
    ],
    ids=["another log", "a silent partition"],
)
def test_a_lag_that_a_look_cannot_tell_is_none(story: LedgerStory, look: object) -> None:
    story.open({0: (0, 10), 1: (0, 10)})
    record_look(story.ledger, FEED, look)  # type: ignore[arg-type]

    assert story.ledger.feed_heads(most_runs=1)[0].lag is None


def test_what_stands_is_counted_by_verdict_and_the_worst_told_of_each_partition(
    story: LedgerStory,
) -> None:
    story.open({0: (0, 10), 1: (0, 10)})
    story.ledger.record_findings(
        FEED,
        [
            finding_of(0, 5),
            finding_of(5, 6, verdict=Verdict.SUSPECTED),
            finding_of(0, 5, partition=1),
        ],
    )
    waived = story.ledger.findings(FEED)[2]
    accept(story.ledger, waived.finding_id)

    [head] = story.ledger.feed_heads(most_runs=1)

    assert head.standing == {Verdict.PROVEN_LOSS: 1, Verdict.SUSPECTED: 1, Verdict.WAIVED: 1}
    assert story.ledger.standing_by_partition(FEED) == {0: Verdict.PROVEN_LOSS, 1: Verdict.WAIVED}


def test_the_newest_batches_come_first_page_by_page(story: LedgerStory) -> None:
    story.open({0: (0, 30)})
    first = story.committed((0, 0, 10))
    second = story.begin(story.planned((0, 10, 20)))

    [newest] = story.ledger.batch_heads(FEED, most=1)
    [older] = story.ledger.batch_heads(FEED, before=newest.number, most=1)

    assert (newest.batch_id, newest.state) == (second.batch_id, BatchState.LANDING)
    assert (newest.holder, newest.rows, newest.last_outcome) == (OWNER, None, None)
    assert (older.batch_id, older.committed_by) == (first.batch_id, OWNER)
    assert (older.rows, older.holes, older.files, older.attempts) == (10, 0, 1, 1)
    assert not story.ledger.batch_heads(FEED, before=older.number, most=1)


def test_logs_are_told_with_their_rows_and_holes(story: LedgerStory) -> None:
    story.open({0: (5, 30), 1: (0, 0)})
    attempt = story.begin(story.planned((0, 5, 15)))
    story.verify(attempt, holes={0: {HoleClass.CONTROL: OffsetRuns.of([(7, 9)])}})
    story.ledger.commit(attempt)

    logs = story.ledger.newest_logs(FEED)
    totals = story.ledger.totals_of_logs([each.generation_id for each in logs])

    assert [(each.partition, each.first_offset, each.frontier) for each in logs] == [
        (0, 5, 15),
        (1, 0, 0),
    ]
    assert [(each.rows, each.lost, each.holes) for each in totals.values()] == [
        (8, 0, {HoleClass.CONTROL: 2}),
        (0, 0, {}),
    ]


def test_a_run_is_told_by_its_plan_its_batches_and_what_was_found_meanwhile(
    story: LedgerStory,
) -> None:
    story.open({0: (0, 30)})
    attempt = story.begin(story.planned((0, 0, 10), window=HOUR))
    story.verify(attempt)
    story.ledger.commit(attempt)
    story.ledger.mark_published(attempt.batch_id, OWNER)
    story.ledger.record_findings(FEED, [finding_of(0, 5)])
    story.planned((0, 10, 20), owner=RIVAL)
    story.ledger.record_findings(FEED, [finding_of(5, 6)])
    number = story.ledger.store_report(a_report(), OWNER)

    run = story.ledger.run_record(FEED, OWNER, most=10)
    rival = story.ledger.run_record(FEED, RIVAL, most=10)

    assert (run.windows, run.report) == ([HOUR], number)
    assert [(each.batch_id, each.published_by) for each in run.batches] == [
        (attempt.batch_id, OWNER)
    ]
    assert [each.finding.from_offset for each in run.findings] == [0]
    assert [each.finding.from_offset for each in rival.findings] == [5]
    assert story.ledger.report_text(FEED, number) == storable(a_report().to_json())
    assert story.ledger.report_text(FeedName("another"), number) is None
    assert story.ledger.run_record(FEED, RIVAL, most=10).report is None


def test_a_hurried_ledger_waits_for_no_statement(story: LedgerStory, ledger_dsn: str) -> None:
    story.open({0: (0, 30)})
    hurried = Ledger(ledger_dsn, timedelta(seconds=1))
    with story.raw() as hand, hand.transaction():
        hand.execute("LOCK TABLE feed")
        with pytest.raises(LedgerUnavailable):
            hurried.feed_heads(most_runs=1)
    hurried._connection._patience = timedelta(seconds=BUSY_SECONDS)
    assert hurried.feed_heads(most_runs=1)[0].feed == FEED
    hurried.close()
