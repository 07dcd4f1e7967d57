"""Where a record is: by partition and offset, by time, by file; honest words where it is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.snapshot import WindowBorder
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.planning.feed_edits import FeedInFile
from tallystick.domain.planning.log_changes import EndedGeneration, LogChanges
from tallystick.domain.report.whereabouts import Place
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.window import Window
from tallystick.report.whereabouts import PLANS, WINDOWS, PlacePart, whereabouts
from tallystick.web.pages import rendered
from tests.contract.test_ledger_planning import lost
from tests.contract.test_ledger_repair import landed as landed_in_files
from tests.pages.test_batches import repaired
from tests.support.ledger_story import FEED, HOUR, NOON, TOPIC, LedgerStory, opened, snapshot_of
from tests.support.looks import record_look


def places(story: LedgerStory, text: str) -> list[PlacePart]:
    found = whereabouts(story.ledger, FEED, text)
    assert found, text
    return list(found.places)


def place(story: LedgerStory, text: str) -> PlacePart:
    [found] = places(story, text)
    return found


def published(
    story: LedgerStory, *ranges: tuple[int, int, int], window: Window | None = None
) -> BatchId:
    attempt = story.begin(story.planned(*ranges, window=window))
    story.verify(attempt)
    story.ledger.commit(attempt)
    story.ledger.mark_published(attempt.batch_id)
    return attempt.batch_id


def described(story: LedgerStory, until: str) -> None:
    file = FeedInFile(TOPIC, "/landing", Isolation.READ_COMMITTED, until, "0 * * * *", "UTC")
    with story.ledger.planning(FEED, TOPIC) as session:
        session.describe(file)


@pytest.mark.parametrize("is_folded", [False, True])
def test_a_landed_offset_names_its_batch_and_its_file(story: LedgerStory, is_folded: bool) -> None:
    story.open({0: (0, 40), 1: (0, 40)})
    published(story, (0, 0, 10), (1, 0, 10))
    second = published(story, (0, 10, 20), (1, 10, 15))
    if is_folded:
        assert story.ledger.fold(FEED) == 2

    found = place(story, "orders-1 12")

    assert (found.state, found.batch_id, found.generation) == (Place.LANDED, second, 1)
    assert found.said == "Offset 12 of orders-1 is landed."
    [file] = found.files
    assert (file.partition, file.from_offset, file.until_offset) == (1, 10, 15)
    assert f"/batch={second}/{second}-" in file.path
    assert places(story, "1:12") == [found]


def test_an_offset_that_is_committed_and_not_published_says_so(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    story.committed((0, 0, 10))
    found = place(story, "0 5")
    assert "is committed, and readers see it once its batch is published" in found.said
    assert "/_staging/" in found.files[0].path


def test_a_repaired_offset_is_in_the_repair(story: LedgerStory) -> None:
    old, repairs = repaired(story, 0, 40)
    story.ledger.fold(FEED)
    assert (place(story, "0 50").batch_id, place(story, "0 3").batch_id) == tuple(reversed(repairs))
    hole = place(story, "0 60")
    assert (hole.state, list(hole.files), hole.batch_id) == (Place.HOLE, [], repairs[1])
    assert "its transaction was aborted" in hole.said
    gone = place(story, old)
    assert gone.state is Place.LANDED
    assert "Readers read it no more: a repair has taken its place" in gone.said
    assert all(each in gone.said for each in repairs)


def test_a_hole_at_the_end_of_a_batch_names_the_batch(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    attempt = story.begin(story.planned((0, 0, 10)))
    story.verify(attempt, holes={0: {HoleClass.CONTROL: OffsetRuns.of([(9, 10)])}})
    story.ledger.commit(attempt)
    found = place(story, "0 9")
    assert (found.state, found.batch_id, list(found.files)) == (Place.HOLE, attempt.batch_id, [])


def test_what_is_not_landed_says_why(story: LedgerStory) -> None:
    story.open({0: (5, 40)})
    published(story, (0, 5, 10))
    flying = story.planned((0, 10, 20))
    story.change(LogChanges(lost=[lost(story, 20, 25)]))
    record_look(story.ledger, FEED, snapshot_of({0: (5, 40)}))

    said = {each: place(story, f"0 {each}").state for each in (4, 12, 22, 30, 40)}

    assert said == {
        4: Place.BEFORE,
        12: Place.IN_FLIGHT,
        22: Place.LOST,
        30: Place.NOT_LANDED,
        40: Place.NOT_WRITTEN,
    }
    assert place(story, "0 12").batch_id == flying
    assert "recorded as lost (A1)" in place(story, "0 22").said
    assert place(story, "7 1").said == "The feed knows no partition 7."


def test_an_offset_of_two_lives_of_a_log_has_two_places(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    first = published(story, (0, 0, 10))
    ended = EndedGeneration(story.account().generation_id, FindingCode.TOPIC_RECREATED, "anew")
    story.change(
        LogChanges(closed=[ended], opened=[opened(0, ordinal=2, topic_id="other")]),
        {0: (0, 20)},
        topic_id="other",
    )
    newer, older = places(story, "0 5")
    assert (newer.generation, newer.state) == (2, Place.NOT_LANDED)
    assert (older.generation, older.batch_id) == (1, first)
    assert place(story, "0 15").generation == 2, "an ended log in which nobody saw it says nothing"


def test_a_time_leads_to_the_window_that_holds_it(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    described(story, "window_end")
    batch_id = published(story, (0, 0, 10), window=HOUR)
    found = whereabouts(story.ledger, FEED, "2026-11-01T11:30Z")
    assert found
    assert [each.batch_id for each in found.places] == [batch_id]
    assert found.places[0].said == "Published, of the window 2026-11-01 11:00-12:00 (UTC)."
    assert found.about == WINDOWS
    assert "was not over when Kafka was asked last" in place(story, "2026-11-01T12:00Z").said


def test_a_window_in_which_nothing_was_due_has_no_batch(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    described(story, "window_end")
    look = replace(snapshot_of({0: (0, 40)}), border=WindowBorder(NOON, ends={0: 5}))
    record_look(story.ledger, FEED, look)
    assert place(story, "2026-11-01T11:30Z").said.startswith("No batch has a window that holds")


def test_a_time_leads_to_the_first_plan_after_it(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    described(story, "now")
    before = story.ledger.clock()
    first = published(story, (0, 0, 10))
    between = story.ledger.clock()
    second = story.planned((0, 10, 20))
    for at, batch_id in ((before, first), (between, second)):
        found = whereabouts(story.ledger, FEED, at.isoformat())
        assert found
        assert ([each.batch_id for each in found.places], found.about) == ([batch_id], PLANS)
    assert place(story, between.isoformat()).state is Place.IN_FLIGHT
    later = story.ledger.clock() + timedelta(days=1)
    assert place(story, later.isoformat()).said.startswith("Kafka was not asked since ")


def test_a_time_leads_past_a_replaced_batch(story: LedgerStory) -> None:
    at = story.ledger.clock()
    _, repairs = repaired(story, 0, 40)
    assert [each.batch_id for each in places(story, at.isoformat())] == repairs


def test_what_was_given_up_is_lost_at_its_time_too(story: LedgerStory) -> None:
    at = story.ledger.clock()
    files = landed_in_files(story)
    plan = replace(story.batch_of(), replaces=tuple(files))
    story.freeze(plan)
    attempt = story.begin(plan.batch_id)
    story.verify(attempt)
    story.ledger.commit(attempt)
    found = place(story, at.isoformat())
    assert (found.batch_id, found.state) == (plan.batch_id, Place.LOST)
    assert place(story, "0 30").state is Place.LOST
    assert place(story, files[0].batch_id).state is Place.LOST


def test_a_file_is_found_by_its_name_and_its_path_and_a_batch_by_its_id(story: LedgerStory) -> None:
    story.open({0: (0, 40), 1: (0, 40)})
    batch_id = published(story, (0, 0, 10), (1, 0, 10))
    both = place(story, batch_id)
    assert [each.partition for each in both.files] == [0, 1]
    path = both.files[1].path
    for text in (path, path.rpartition("/")[2], f"hdfs://nn:8020{path}"):
        assert list(place(story, text).files) == [both.files[1]]
    strange = place(story, f"{batch_id}-{'e' * 16}-00000.parquet")
    assert (strange.state, strange.batch_id) == (Place.UNKNOWN, batch_id)
    assert "has committed no such file" in strange.said
    assert place(story, "e" * 16).state is Place.UNKNOWN


@pytest.mark.parametrize("text", ["", "something", "payments-0 5", "2026-11-01T11:30", "0 -1"])
def test_what_names_nothing_of_the_feed_is_not_guessed_at(story: LedgerStory, text: str) -> None:
    story.open({0: (0, 40)})
    assert whereabouts(story.ledger, FEED, text) is None


def test_the_page_shows_the_place_and_leads_to_the_batch(story: LedgerStory) -> None:
    story.open({0: (0, 40)})
    batch_id = published(story, (0, 0, 10))
    page = rendered(
        "find.html", "/feeds/orders/find", answer=whereabouts(story.ledger, FEED, "0 5")
    )
    assert "<h2>Landed</h2>" in page
    assert f'href="../../batches/{batch_id}"' in page
    assert "[0, 10)" in page
    assert 'action="../../feeds/orders/find"' in page
    assert 'value="0 5"' in page
