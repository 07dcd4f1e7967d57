"""What the routes answer: which feed and which partition comes first, and what is said of each."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from tallystick.domain.identities import FeedName, Owner
from tallystick.domain.report.completeness import CompleteBy
from tallystick.domain.verdicts import Verdict
from tallystick.web import landed, reading, stored_reports
from tallystick.web.answers import AskedRunPart
from tallystick.web.reading import Search, partitions_of
from tests.contract.test_ledger_reports import a_report
from tests.pages.test_signs import dags
from tests.support.ledger_story import (
    FEED,
    NOON,
    OWNER,
    LedgerStory,
    finding_of,
    snapshot_of,
)
from tests.support.looks import record_look
from tests.support.report_documents import a_document, a_finding, a_partition
from tests.support.waivers import accept

LATER = NOON + timedelta(hours=1)


def looked(story: LedgerStory, *high_watermarks: int) -> None:
    bounds = {number: (0, high) for number, high in enumerate(high_watermarks)}
    record_look(story.ledger, story.feed, snapshot_of(bounds))


def tell(story: LedgerStory, up_to: datetime | None) -> None:
    story.ledger.tell_complete(story.feed, up_to, CompleteBy.READABLE, story.ledger.clock())


def test_the_worst_feed_comes_first(story: LedgerStory) -> None:
    names = ("calm", "lossy", "unseen", "waiting")
    for name in names:
        other = LedgerStory(story.dsn, FeedName(name))
        other.open({0: (0, 5)})
        other.committed((0, 0, 5))
        looked(other, 25 if name == "waiting" else 5)
        if name != "unseen":
            part = a_partition(seconds_to_loss=7 * 24 * 3600.0)
            report = a_report(feed=name, verdict=Verdict.PROVEN_OK, partitions=(part,))
            other.ledger.store_report(report)
            other.ledger.tell_complete(
                other.feed, report.complete_up_to, report.complete_by, other.ledger.clock()
            )
        if name == "lossy":
            other.ledger.record_findings(other.feed, [finding_of(0, 5)])
        other.ledger.close()

    found = reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), LATER)

    assert [(each.feed, each.verdict, each.open_findings) for each in found] == [
        ("lossy", Verdict.PROVEN_LOSS, 1),
        ("unseen", Verdict.UNKNOWN, 0),
        ("waiting", Verdict.PROVEN_OK, 0),
        ("calm", Verdict.PROVEN_OK, 0),
    ]
    assert [(each.lag, each.seconds_to_loss) for each in found[2:]] == [
        (20, 7 * 24 * 3600.0 - 3600),
        (0, None),
    ]


def test_of_feeds_with_one_verdict_the_unproven_come_first(story: LedgerStory) -> None:
    for name in ("any", "bare"):
        other = LedgerStory(story.dsn, FeedName(name))
        other.open({0: (0, 5)})
        other.committed((0, 0, 5))
        looked(other, 5)
        other.ledger.tell_complete(
            other.feed, NOON if name == "any" else None, CompleteBy.READABLE, other.ledger.clock()
        )
        other.ledger.close()

    found = reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), LATER)

    assert [each.feed for each in found] == ["bare", "any"]


def test_a_finding_that_has_ended_since_the_report_counts_no_more(story: LedgerStory) -> None:
    story.open({0: (0, 20)})
    looked(story, 0)
    story.ledger.record_findings(FEED, [finding_of(0, 5)])
    story.ledger.store_report(a_report(verdict=Verdict.PROVEN_LOSS))
    [stands] = story.ledger.findings(FEED)
    assert (
        reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), LATER)[0].verdict
        is Verdict.PROVEN_LOSS
    )

    accept(story.ledger, stands.finding_id)
    waived = reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), LATER)[0]
    story.ledger.close_findings(FEED, {stands.finding_id: "It is over."})
    closed = reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), LATER)[0]

    assert (waived.verdict, waived.open_findings) == (Verdict.WAIVED, 0)
    assert waived.findings == {"WAIVED": 1}
    assert (closed.verdict, closed.findings) == (Verdict.PROVEN_OK, {})


def test_partitions_are_found_by_number_and_verdict_worst_first(story: LedgerStory) -> None:
    story.open(dict.fromkeys(range(12), (0, 0)))
    story.committed((0, 0, 10), (1, 0, 10), (11, 0, 5))
    looked(story, *[10] * 12)
    story.ledger.record_findings(FEED, [finding_of(0, 5, partition=1)])

    def page(**search: object) -> list[tuple[int, Verdict, int | None]]:
        found = partitions_of(story.ledger, FEED, Search(**search))  # type: ignore[arg-type]
        return [(each.partition, each.verdict, each.lag) for each in found.partitions]

    assert page(limit=3) == [
        (1, Verdict.PROVEN_LOSS, 0),
        (2, Verdict.UNKNOWN, 10),
        (3, Verdict.UNKNOWN, 10),
    ]
    assert page(number="1") == [
        (1, Verdict.PROVEN_LOSS, 0),
        (10, Verdict.UNKNOWN, 10),
        (11, Verdict.PROVEN_OK, 5),
    ]
    assert page(verdict=Verdict.PROVEN_OK) == [
        (11, Verdict.PROVEN_OK, 5),
        (0, Verdict.PROVEN_OK, 0),
    ]
    whole = partitions_of(story.ledger, FEED, Search(offset=11))
    assert (whole.total, whole.matching, len(whole.partitions)) == (12, 12, 1)
    assert (whole.partitions[0].rows, whole.partitions[0].holes["control"]) == (10, 0)


def test_findings_and_batches_come_page_by_page(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    for start in (0, 10, 20):
        story.committed((0, start, start + 10))
    story.ledger.record_findings(
        FEED, [finding_of(1, 2, verdict=Verdict.SUSPECTED), finding_of(0, 1)]
    )

    batches = landed.batches_of(story.ledger, FEED, None, 2)
    rest = landed.batches_of(story.ledger, FEED, batches.before, 2)
    findings = reading.findings_of(story.ledger, FEED, 1, 5)

    assert [each.number for each in (*batches.batches, *rest.batches)] == [3, 2, 1]
    assert (batches.before, rest.before) == (2, None)
    assert findings.total == 2
    assert [each.verdict for each in findings.findings] == [Verdict.SUSPECTED]


def test_a_run_that_reports_is_told_with_its_report(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    story.ledger.record_findings(FEED, [finding_of(0, 5)])
    [stands] = story.ledger.findings(FEED)
    document = a_document(findings=[a_finding(stands.finding_id)])
    number = story.ledger.store_report(document, Owner("reconcile_orders/r1"))
    story.ledger.close_findings(FEED, {stands.finding_id: "It is over."})

    found = reading.run_of(story.ledger, FEED, Owner("reconcile_orders/r1"))
    nothing = reading.run_of(story.ledger, FEED, OWNER)

    assert found.report
    assert (found.report.number, found.report.verdict) == (number, Verdict.PROVEN_LOSS)
    assert found.report.complete_up_to == document.complete_up_to
    assert [each.closed_by for each in found.findings] == ["It is over."]
    assert (nothing.planned_at, nothing.report, nothing.batches) == (None, None, ())


def test_one_cause_of_many_findings_is_one_trouble(story: LedgerStory) -> None:
    story.open(dict.fromkeys(range(4), (0, 10)))
    taken = [finding_of(0, 5, partition=each) for each in range(4)]
    story.ledger.record_findings(FEED, [*taken, finding_of(6, 7, verdict=Verdict.SUSPECTED)])
    feed = reading.feed_of_name(story.ledger, FEED, LATER)
    assert feed is not None
    assert (feed.open_findings, feed.open_troubles) == (5, 2)

    page = reading.findings_of(story.ledger, FEED, 0, 10)
    assert (page.total, page.troubles) == (5, 2)
    one = reading.finding_of_number(story.ledger, 3, "grace")
    assert one is not None
    assert one.finding_ids == [1, 2, 3, 4]

    accept(story.ledger, 5)
    feed = reading.feed_of_name(story.ledger, FEED, LATER)
    assert feed is not None
    assert feed.open_troubles == 1


def test_a_list_reads_no_more_findings_than_a_page_may_wait_for(
    story: LedgerStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    really = story.ledger.findings
    monkeypatch.setattr(story.ledger, "findings", lambda feed: read.append(feed) or really(feed))
    for name, count in (("many", 3), ("more", 3), ("one", 1), ("unseen", 2)):
        other = LedgerStory(story.dsn, FeedName(name))
        other.open({0: (0, 20)})
        other.ledger.record_findings(other.feed, [finding_of(each, 9) for each in range(count)])
        other.ledger.close()
    heads = [each for each in reading.heads_of_list(story.ledger) if each.feed != "unseen"]

    def told(most: int) -> dict[str, int | None]:
        monkeypatch.setattr(reading, "MOST_GROUPED", most)
        found = reading.feeds_of(story.ledger, heads, LATER)
        return {each.feed: each.open_troubles for each in found}

    assert told(2) == {"many": None, "more": None, "one": 1}
    assert not read
    assert told(5) == {"many": 1, "more": None, "one": 1}
    assert read == ["many"]


def test_what_is_asked_first_is_answered_first(story: LedgerStory) -> None:
    midnight = NOON.replace(hour=0)
    for name, complete_up_to in (("behind", midnight - timedelta(seconds=1)), ("whole", midnight)):
        other = LedgerStory(story.dsn, FeedName(name))
        other.open({0: (0, 20)})
        looked(other, 0)
        report = a_report(feed=name, verdict=Verdict.PROVEN_OK, complete_up_to=complete_up_to)
        other.ledger.store_report(report)
        other.ledger.tell_complete(
            other.feed, report.complete_up_to, report.complete_by, other.ledger.clock()
        )
        if name == "whole":
            other.ledger.record_findings(other.feed, [finding_of(0, 5)])
        other.ledger.close()

    answers = reading.feeds_of(story.ledger, reading.heads_of_list(story.ledger), LATER)
    known = {FeedName(name): dags() for name in ("behind", "whole", "begins")}

    found = reading.in_short(answers, known, {}, LATER)

    assert found.wrong == ["whole", "begins"]
    assert found.yesterday_open == ["whole", "behind", "begins"], "one lost records since"
    assert (found.known, len(found.feeds)) == (3, 2), "one has no plan yet"
    assert found.today == midnight


def test_stored_reports_come_page_by_page_with_who_made_them(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    numbers = [story.ledger.store_report(a_document(), made_by) for made_by in (None, OWNER, None)]

    first = stored_reports.reports_of(story.ledger, FEED, None, 2)
    rest = stored_reports.reports_of(story.ledger, FEED, first.before, 2)

    shown = [(each.number, each.made_by) for each in (*first.reports, *rest.reports)]
    assert shown == list(zip(reversed(numbers), (None, OWNER, None), strict=True))
    assert (first.before, rest.before) == (numbers[1], None)


def test_a_report_is_searched_as_it_was(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    document = a_document(partitions=12)
    number = story.ledger.store_report(document)
    value = story.ledger.report_value(FEED, number)
    assert value == json.loads(story.ledger.report_text(FEED, number) or "")

    found = stored_reports.seen_in(value, Search("1", Verdict.PROVEN_OK, 1, 2), 1, 5)

    assert (found["matching"], found["partition_total"], found["finding_total"]) == (3, 12, 2)
    by_lag = sorted(
        (each for each in document.partitions if each.partition in (1, 10, 11)),
        key=lambda each: -(each.lag or 0),
    )
    assert list(found["partitions"]) == by_lag[1:3]
    assert [each.findings for each in found["troubles"]] == [document.findings[1:]]
    assert found["drawn"] == stored_reports.NewestDrawings().of(story.ledger, FEED)


def test_drawings_are_made_once_for_each_report(
    story: LedgerStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.open({0: (0, 40)})
    drawings = stored_reports.NewestDrawings()
    assert drawings.of(story.ledger, FEED) is None

    story.ledger.store_report(a_document(partitions=3))
    first = drawings.of(story.ledger, FEED)
    assert first is not None
    with monkeypatch.context() as patch:
        patch.delattr(stored_reports, "drawings_of")
        assert drawings.of(story.ledger, FEED) is first

    story.ledger.store_report(a_document(partitions=12))
    assert drawings.of(story.ledger, FEED) not in (None, first)


def test_two_reports_are_compared(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    stays, ends, begins = (a_finding(each) for each in (1, 2, 3))
    unnumbered = replace(a_finding(4), number=None)
    before = a_document(partitions=4, findings=[stays, ends, unnumbered])
    sound, lossy, other_log, gone = before.partitions
    after = replace(
        before,
        findings=(begins, stays, unnumbered),
        complete_up_to=NOON,
        partitions=(
            replace(sound, frontier=sound.frontier + 7),
            replace(lossy, verdict=Verdict.PROVEN_LOSS),
            replace(other_log, generation=2, frontier=0),
        ),
    )
    before = replace(before, complete_up_to=NOON + timedelta(seconds=60))
    numbers = [story.ledger.store_report(each) for each in (before, after)]

    found = stored_reports.changes_of(story.ledger, FEED, *numbers)

    assert found
    assert [each.number for each in found.new_findings] == [3]
    assert [each.number for each in found.ended_findings] == [2]
    assert (found.new_total, found.ended_total, found.stays_total) == (1, 1, 2)
    assert (found.complete_moved_seconds, found.frontier_moved) == (-60, 7)
    assert [each.partition for each in found.moved] == [1, 3, 0, 2]
    lost = found.moved[1]
    assert (lost.earlier_frontier, lost.later_frontier) == (gone.frontier, None)
    assert stored_reports.changes_of(story.ledger, FEED, numbers[0], 99) is None


def test_a_report_is_no_other_feeds(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    number = story.ledger.store_report(a_document())
    nobody = FeedName("nobody")

    assert stored_reports.changes_of(story.ledger, nobody, number, number) is None
    assert story.ledger.report_value(nobody, number) is None
    assert not stored_reports.reports_of(story.ledger, nobody, None, 5).reports


def test_a_trouble_is_one_card_of_a_report_and_stands_together_among_changes(
    story: LedgerStory,
) -> None:
    story.open({0: (0, 40)})
    whole = [a_finding(each) for each in range(1, 31)]
    mixed = [
        replace(each, trouble=f"disk {each.number % 2}")
        for each in whole
        if each.number is not None
    ]
    numbers = [story.ledger.store_report(a_document(findings=each)) for each in ((), mixed)]
    value = story.ledger.report_value(FEED, numbers[1])
    assert value

    first = stored_reports.seen_in(value, Search(), 0, 1)
    changes = stored_reports.changes_of(story.ledger, FEED, *numbers)

    assert [len(each.findings) for each in first["troubles"]] == [15]
    assert (first["trouble_total"], first["finding_total"]) == (2, 30)
    assert changes
    told = [each.trouble for each in changes.new_findings]
    assert told == sorted(told, key=told.index)


def test_two_reports_are_compared_in_the_order_of_their_numbers(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    numbers = [story.ledger.store_report(a_document()) for _ in range(2)]
    found = stored_reports.changes_of(story.ledger, FEED, *reversed(numbers))
    assert found
    assert [found.earlier.number, found.later.number] == numbers
    assert stored_reports.changes_of(story.ledger, FEED, 2**63 - 1, numbers[0]) is None


def test_what_ended_while_a_repair_of_all_ran_is_told_with_it(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    story.ledger.record_findings(FEED, [finding_of(each, each + 1) for each in range(4)])
    story.ledger.close_findings(FEED, {1: "Before."})
    began = story.ledger.clock()
    story.ledger.close_findings(FEED, {2: "By the repair.", 3: "By the repair."})
    ended = story.ledger.clock()
    story.ledger.close_findings(FEED, {4: "After."})

    def told(until: datetime | None, **changed: object) -> list[int | None]:
        asked = AskedRunPart(
            dag_id="repair_orders",
            run_id="r",
            state="success",
            is_dry_run=False,
            findings=[],
            evidence=[],
            asked_by="ada",
            queued_at=began,
            ended_at=until,
            plan=None,
        ).but(**changed)
        return [each.number for each in reading.findings_asked_of(story.ledger, FEED, asked)]

    assert told(ended) == [2, 3]
    assert told(None) == [2, 3, 4]
    assert told(None, is_dry_run=True) == []
    [found] = story.ledger.findings_ended(FEED, began, None, most=1)
    assert found.finding_id == 2
    assert not story.ledger.findings_ended(FeedName("nobody"), began, None, most=9)
