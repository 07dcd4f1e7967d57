"""What reports are made of: sums over the ledger's rows, looks on record, stored documents."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import FeedName
from tallystick.domain.logs.snapshot import WindowBorder
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.planning.log_changes import LogChanges, LostRange
from tallystick.domain.report.completeness import CompleteBy
from tallystick.domain.report.coverage_map import CoverageMap
from tallystick.domain.report.document import ReportDocument
from tallystick.domain.report.looks import Look
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.verdicts import Verdict
from tallystick.domain.window import Window
from tallystick.errors import LedgerRefused
from tallystick.ledger.reports import LandedTotals, WindowTotals
from tallystick.ledger.texts import compressed
from tests.support.builders import a_range
from tests.support.ledger_story import FEED, HOUR, NOON, LedgerStory, manifest_of, snapshot_of
from tests.support.looks import record_look

HOURS = [NOON + timedelta(hours=each) for each in range(-2, 3)]


def totals(story: LedgerStory) -> LandedTotals:
    return story.ledger.landed_totals(
        FEED, edges=HOURS, looks_at=HOURS[1:], instants=[NOON], ages_seconds=[3600, 86400]
    )


def landed(
    story: LedgerStory,
    from_offset: int,
    until_offset: int,
    *,
    window: Window | None = HOUR,
    by_run: Window | None = None,
    replaces: tuple[CommittedFile, ...] = (),
    **holes: tuple[int, int],
) -> CommittedFile:
    """A committed batch of partition 0; its holes by class, and its one file."""
    batch = story.batch_of((0, from_offset, until_offset), window=window)
    batch = replace(batch, replaces=replaces)
    story.freeze(batch, window=by_run or window)
    attempt = story.begin(batch.batch_id)
    runs = {HoleClass(kind): OffsetRuns.of([pair]) for kind, pair in holes.items()}
    plan = story.ledger.batch(batch.batch_id).plan
    manifest = manifest_of(plan, attempt, holes={0: runs})
    story.ledger.record_verified(attempt, manifest)
    story.ledger.commit(attempt)
    return CommittedFile(batch.batch_id, manifest.files[0].name)


def test_a_logs_totals_are_those_of_its_ranges(story: LedgerStory) -> None:
    story.open({0: (0, 99), 1: (0, 99)})
    landed(story, 0, 10, control=(3, 5))
    landed(story, 10, 20, aborted=(10, 11), control=(15, 16))
    generation = story.account().generation_id

    logs = totals(story).logs

    assert [(each.rows, each.lost, each.missing_below) for each in logs.values()] == [
        (16, 0, 0), (0, 0, 0)
    ]  # fmt: skip
    assert logs[generation].holes == {HoleClass.CONTROL: 3, HoleClass.ABORTED: 1}


def test_folding_changes_no_total(story: LedgerStory) -> None:
    story.open({0: (0, 99)})
    for start in range(0, 50, 10):
        landed(story, start, start + 10, control=(start, start + 1))
    for row in story.ledger.unpublished(FEED):
        story.ledger.mark_published(row.plan.batch_id)
    before = totals(story)

    assert story.ledger.fold(FEED) == 1
    assert totals(story) == before


def test_lost_offsets_are_counted_apart(story: LedgerStory) -> None:
    story.open({0: (0, 99)})
    landed(story, 0, 10)
    lost = LostRange(story.account().generation_id, a_range(10, 14), FindingCode.EXPIRED, {})
    story.change(LogChanges(lost=[lost]), {0: (14, 99)})

    (log,) = totals(story).logs.values()

    assert (log.rows, log.lost, log.missing_below) == (10, 4, 0)


def test_what_a_repair_landed_again_counts_once(story: LedgerStory) -> None:
    story.open({0: (0, 99)})
    old = landed(story, 0, 10, compacted=(2, 4), control=(9, 10))
    landed(story, 10, 20, aborted=(12, 13))
    # Meanwhile the cleaner has taken two more records and the marker.
    landed(story, 0, 10, replaces=(old,), compacted=(2, 6), control=(9, 10))

    found = totals(story)
    (log,) = found.logs.values()

    assert log.rows == 5 + 9
    assert log.holes == {HoleClass.COMPACTED: 4, HoleClass.CONTROL: 1, HoleClass.ABORTED: 1}
    assert sum(each.rows for each in found.windows.values()) == 14
    assert sum(found.accounted.values()) == 20


def test_what_a_repair_could_not_land_again_was_accounted_for_once(story: LedgerStory) -> None:
    story.open({0: (0, 99)})
    old = landed(story, 0, 10)
    landed(story, 4, 10, replaces=(old,))  # the broker has [0, 4) no more

    found = totals(story)
    (log,) = found.logs.values()

    assert (log.rows, log.lost) == (6, 4)
    assert sum(found.accounted.values()) == 10


def test_a_hole_that_changed_its_class_counts_by_the_newest_proof(story: LedgerStory) -> None:
    story.open({0: (0, 99)})
    old = landed(story, 0, 10, aborted=(2, 4))
    landed(story, 0, 10, replaces=(old,), compacted=(2, 4))

    (log,) = totals(story).logs.values()

    assert {kind: count for kind, count in log.holes.items() if count} == {HoleClass.COMPACTED: 2}


def test_landed_rows_stand_under_the_hour_of_their_window(story: LedgerStory) -> None:
    story.open({0: (0, 99)})
    early = Window(NOON - timedelta(hours=9), NOON - timedelta(hours=8))
    landed(story, 0, 10, window=early)
    landed(story, 10, 30, control=(10, 12))

    found = totals(story)

    # Stretch 0 is everything before the first edge; the window of HOUR begins at 11, stretch 2.
    assert found.windows == {0: WindowTotals(1, 10), 2: WindowTotals(1, 18)}
    assert found.window_holes == {2: {HoleClass.CONTROL: 2}}


def test_a_batch_of_an_older_window_stands_under_its_own_hour(story: LedgerStory) -> None:
    story.open({0: (0, 99)})
    early = Window(NOON - timedelta(hours=9), NOON - timedelta(hours=8))
    landed(story, 0, 10, window=early, by_run=HOUR, control=(3, 4))

    found = totals(story)

    assert found.windows == {0: WindowTotals(1, 9)}
    assert found.window_holes == {0: {HoleClass.CONTROL: 1}}


def test_what_a_run_without_a_window_landed_stands_before_its_look(story: LedgerStory) -> None:
    story.open({0: (0, 99)})
    landed(story, 0, 10, window=None, control=(3, 4))  # planned at noon, which is a look

    found = totals(story)

    assert found.windows == {2: WindowTotals(1, 9)}
    assert found.window_holes == {2: {HoleClass.CONTROL: 1}}


def test_batches_that_were_never_read_again_have_no_age(story: LedgerStory) -> None:
    story.open({0: (0, 99)})
    checked, never = landed(story, 0, 10), landed(story, 10, 20)
    with story.raw() as hand:
        hand.execute(
            "INSERT INTO batch_check (batch_id, level, is_clean, checked_at)"
            " VALUES (%s, 'L3', true, clock_timestamp() - interval '2 hours')",
            (checked.batch_id,),
        )

    ages = [(each.level, each.stretch, each.batches, each.rows) for each in totals(story).ages]

    assert ages == [("L2", None, 2, 20), ("L3", 1, 1, 10), ("L3", None, 1, 10), ("L4", None, 2, 20)]
    assert never != checked


def test_looks_come_back_as_they_were_recorded(story: LedgerStory) -> None:
    story.open({0: (0, 9), 1: (3, 7)})
    later = replace(
        snapshot_of({2: (0, 8), 0: (1, 12)}),
        taken_at=NOON + timedelta(minutes=5),
        leaderless=frozenset({1}),
        border=WindowBorder(NOON, {0: None, 2: 5}, {2: 5}),
    )

    record_look(story.ledger, FEED, later)

    places = story.ledger.look_places(FEED)
    looks = story.ledger.looks([each.snapshot_id for each in places])
    first, second = (looks[each.snapshot_id] for each in places)
    assert [(each.looked_at, each.border_at) for each in places] == [
        (NOON, None),
        (later.taken_at, NOON),
    ]
    assert (list(first.partitions), list(first.high_watermarks)) == ([0, 1], [9, 7])
    assert second == Look(
        later.taken_at,
        later.topic_id,
        second.partitions,
        second.high_watermarks,
        frozenset({1}),
        border_at=NOON,
        borders=second.borders,
    )
    assert (list(second.partitions), list(second.high_watermarks)) == ([0, 2], [12, 8])
    assert list(second.borders) == [None, 5], "of one it is not known"
    sums = story.ledger.look_sums([places[1].snapshot_id])[0]
    assert (sums.log_start, sums.high_watermark, sums.leaderless) == (1, 20, 1)
    newest = story.ledger.newest_bounds(FEED)
    assert newest is not None
    assert (newest.looked_at, newest.high_watermarks) == (later.taken_at, {0: 12, 2: 8})


def test_a_look_is_the_witness_of_what_it_found_whole(story: LedgerStory) -> None:
    story.open({0: (0, 9), 1: (0, 9)})

    record_look(story.ledger, FEED, snapshot_of({0: (0, 20), 1: (0, 20)}), {1})

    assert [story.account(each).last_seen_until for each in (0, 1)] == [9, 20]


def test_a_look_is_doubted_once_and_for_ever(story: LedgerStory) -> None:
    story.open({0: (0, 9)})
    first = record_look(story.ledger, FEED, snapshot_of({0: (0, 9)}))
    second = record_look(story.ledger, FEED, snapshot_of({0: (0, 9)}), doubt="it was cut.")

    for each in (first, second):
        story.ledger.doubt_look(each, "HDFS was silent.")

    looks = story.ledger.looks([first, second])
    doubts = [looks[each].doubt for each in (first, second)]
    assert doubts == ["HDFS was silent.", "it was cut."]
    with story.raw() as hand, pytest.raises(psycopg.Error, match="never changes"):
        hand.execute("UPDATE broker_snapshot SET doubt = NULL")


def test_the_newest_window_end_is_not_after_the_instant(story: LedgerStory) -> None:
    story.open({0: (0, 99)})
    landed(story, 0, 10)

    assert story.ledger.newest_window_end(FEED, NOON) == NOON
    assert story.ledger.newest_window_end(FEED, NOON - timedelta(seconds=1)) is None


def a_report(minutes: int = 0, **changes: object) -> ReportDocument:
    document = ReportDocument(
        feed=FEED,
        topic="orders",
        taken_at=NOON + timedelta(minutes=minutes),
        verdict=Verdict.UNKNOWN,
        complete_up_to=None,
        complete_window_end=None,
        complete_by=CompleteBy.READABLE,
        held_back_by=(),
        levels=("L0", "L1", "L2"),
        deepest="L2",
        silent=(),
        is_complete=False,
        unheard=("HDFS \0 could not be asked: \ud800",),
        findings=(),
        partitions=(),
        coverage=CoverageMap((), ()),
        columns=(),
        band=(),
        ages=(),
    )
    return replace(document, **changes)  # type: ignore[arg-type]


def test_a_stored_report_is_opened_again(story: LedgerStory) -> None:
    reports = [a_report(minutes) for minutes in (0, 30, 60)]
    for each in reports:
        story.ledger.store_report(each)

    assert story.ledger.report_at(FEED, None) == reports[2]
    assert story.ledger.report_at(FEED, NOON + timedelta(minutes=59)) == reports[1]
    assert story.ledger.report_at(FEED, NOON) == reports[0]
    assert story.ledger.report_at(FEED, NOON - timedelta(seconds=1)) is None
    assert story.ledger.report_at(FeedName("nobody"), None) is None


def test_a_report_never_changes(story: LedgerStory) -> None:
    story.ledger.store_report(a_report())

    with story.raw() as hand, pytest.raises(psycopg.Error, match="is evidence and never changes"):
        hand.execute("UPDATE report SET document = ''")


@pytest.mark.parametrize(
    "document", [compressed('{"format": "tallystick-report-9"}'), b"no document"]
)
def test_a_report_of_another_format_is_refused_with_its_number(
    story: LedgerStory, document: bytes
) -> None:
    with story.raw() as hand:
        hand.execute(
            "INSERT INTO report (feed, taken_at, verdict, deepest, silent, document)"
            " VALUES ('orders', now(), 'UNKNOWN', 'L2', '{}', %s)",
            [document],
        )

    with pytest.raises(LedgerRefused, match="report 1 can't be read"):
        story.ledger.report_at(FEED, None)
