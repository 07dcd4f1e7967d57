"""What the ledger promises of full reads, and of directories that were as committed when asked."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.standing_batch import SliceKey
from tallystick.domain.batches.states import HoleClass
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rules.findings import Level
from tallystick.ledger.exporting import exported
from tallystick.ledger.proofs import DirectoryLook
from tallystick.ledger.scrubs import TakenSample
from tests.support.ledger_server import OWNER_ROLE
from tests.support.ledger_story import FEED, NO_TIME, LedgerStory
from tests.support.ledger_waiting import until_somebody_waits

WEEK = timedelta(days=7)
BIG = Fingerprint(5, 2**70, (2**63 - 1, -(2**63)), 0, 4)


def published(story: LedgerStory, *ranges: tuple[int, int, int]) -> BatchId:
    attempt = story.committed(*ranges)
    story.ledger.mark_published(attempt.batch_id)
    return attempt.batch_id


def due(story: LedgerStory, every: timedelta = WEEK) -> list[BatchId]:
    return [each.batch_id for each in story.ledger.scrub_due(FEED, every)]


def file_of(story: LedgerStory, batch_id: BatchId, number: int = 0) -> str:
    [batch] = story.ledger.standing_batches([batch_id])
    return batch.files[number].name


def test_published_batches_are_due_until_they_were_read(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    first, second = published(story, (0, 0, 5)), published(story, (0, 5, 9))
    story.committed((0, 9, 20))
    story.planned((0, 20, 30))
    assert due(story) == [first, second]

    story.ledger.record_scrub(first, {}, is_clean=True)

    assert due(story) == [second]
    [batch] = story.ledger.scrub_due(FEED, WEEK)
    assert (batch.byte_count, batch.checked_at) == (40, None)


def test_never_read_ones_come_first_then_the_oldest_check(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batches = [published(story, (0, each, each + 5)) for each in (0, 5, 10, 15)]
    for number in (3, 0, 1):
        story.ledger.record_scrub(batches[number], {}, is_clean=True)

    assert due(story, NO_TIME) == [batches[each] for each in (2, 3, 0, 1)]
    assert due(story) == [batches[2]]

    story.ledger.record_scrub(batches[3], {}, is_clean=True)  # again: it is the youngest now
    assert due(story, NO_TIME) == [batches[each] for each in (2, 0, 1, 3)]


def test_what_was_not_clean_stays_due_until_it_is(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = published(story, (0, 0, 5))
    story.ledger.record_scrub(batch, {}, is_clean=False)
    assert due(story) == [batch]
    story.ledger.record_scrub(batch, {}, is_clean=True)
    assert due(story) == []


def test_nothing_is_due_of_a_batch_without_rows(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    attempt = story.begin(story.planned((0, 0, 5)))
    story.verify(attempt, holes={0: {HoleClass.CONTROL: OffsetRuns.of([(0, 5)])}})
    story.ledger.commit(attempt)
    story.ledger.mark_published(attempt.batch_id)

    assert due(story) == []
    assert story.ledger.scrub_standing(FEED).batches == 0


def test_the_first_fingerprint_stays_on_record(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = published(story, (0, 0, 5))
    key = SliceKey(file_of(story, batch), 0)

    story.ledger.record_scrub(batch, {key: BIG}, is_clean=True)
    story.ledger.record_scrub(batch, {key: Fingerprint(1, 1, (1, 1), 0, 4)}, is_clean=True)

    [again] = story.another().ledger.standing_batches([batch])
    assert again.fingerprints == {key: BIG}
    assert again.manifest.plan.batch_id == batch


def test_fingerprints_of_another_row_hash_are_not_compared(
    story: LedgerStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.open({0: (0, 100)})
    batch = published(story, (0, 0, 5))
    key, other = SliceKey(file_of(story, batch), 0), Fingerprint(5, 10, (1, 1), 0, 4)
    story.ledger.record_scrub(batch, {key: other}, is_clean=True)

    with monkeypatch.context() as later:
        later.setattr("tallystick.domain.rows.row_hash.VERSION", 3)
        [before] = story.ledger.standing_batches([batch])
        story.ledger.record_scrub(batch, {key: BIG}, is_clean=True)
        [after] = story.ledger.standing_batches([batch])

    assert (before.fingerprints, after.fingerprints) == ({}, {key: BIG})
    [again] = story.ledger.standing_batches([batch])
    assert again.fingerprints == {key: other}


def test_an_export_has_the_fingerprints_in_the_order_of_their_row_hashes(
    story: LedgerStory, monkeypatch: pytest.MonkeyPatch
) -> None:
    story.open({0: (0, 100)})
    batch = published(story, (0, 0, 5))
    for version in (2, 3, 1):
        monkeypatch.setattr("tallystick.domain.rows.row_hash.VERSION", version)
        story.ledger.record_scrub(batch, {SliceKey(file_of(story, batch), 0): BIG}, is_clean=True)

    lines = [json.loads(each.line) for each in exported(story.dsn, FEED)]

    shown = [each["hash_version"] for each in lines if each["table"] == "file_fingerprint"]
    assert shown == [1, 2, 3]


@pytest.mark.parametrize("table", ["file_fingerprint", "batch_check"])
@pytest.mark.parametrize("verb", ["DELETE FROM {0}", "TRUNCATE {0}"])
def test_what_was_seen_is_never_forgotten(story: LedgerStory, table: str, verb: str) -> None:
    with story.raw() as hand, pytest.raises(psycopg.Error, match="evidence and never changes"):
        hand.execute(verb.format(table).encode())


def test_retracted_files_are_not_read(story: LedgerStory) -> None:
    story.open({0: (0, 100), 1: (0, 100)})
    batch = published(story, (0, 0, 10), (1, 0, 20))
    [standing] = story.ledger.standing_batches([batch])
    retracted, kept = (each.name for each in standing.files)
    replaced = (CommittedFile(batch, retracted),)
    repair = replace(story.batch_of((0, 0, 10)), replaces=replaced)
    story.freeze(repair)
    attempt = story.begin(repair.batch_id)
    story.verify(attempt)
    assert story.ledger.scrub_due(FEED, WEEK)[0].byte_count == 300

    story.ledger.commit(attempt)

    [standing] = story.ledger.standing_batches([batch])
    assert [each.name for each in standing.files] == [kept]
    assert [(each.batch_id, each.byte_count) for each in story.ledger.scrub_due(FEED, WEEK)] == [
        (batch, 200)  # and the repair's batch is not published yet
    ]


def test_batches_come_in_the_order_asked_for_and_unknown_ones_not_at_all(
    story: LedgerStory,
) -> None:
    story.open({0: (0, 100)})
    first, second = published(story, (0, 0, 5)), published(story, (0, 5, 9))
    found = story.ledger.standing_batches([second, BatchId("f" * 16), first])
    assert [each.batch_id for each in found] == [second, first]
    assert story.ledger.standing_batches([]) == []


def test_how_far_full_reads_have_come(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batches = [published(story, (0, each, each + 5)) for each in (0, 5, 10)]
    standing = story.ledger.scrub_standing(FEED)
    assert (standing.batches, standing.never_read, standing.oldest_read_at) == (3, 3, None)

    for each in batches[:2]:
        story.ledger.record_scrub(each, {}, is_clean=True)

    standing = story.ledger.scrub_standing(FEED)
    assert (standing.batches, standing.never_read) == (3, 1)
    [[oldest]] = story.ask("SELECT min(checked_at) FROM batch_check")
    assert standing.oldest_read_at == oldest


def test_what_could_not_be_read_stays_due_behind_all_others(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    first, second, third = (published(story, (0, each, each + 5)) for each in (0, 5, 10))
    story.ledger.record_unread([first, second], Level.L3)

    assert due(story) == [third, first, second]
    assert {each.checked_at for each in story.ledger.scrub_due(FEED, WEEK)} == {None}
    standing = story.ledger.scrub_standing(FEED)
    assert (standing.never_read, standing.oldest_read_at) == (3, None)

    story.ledger.record_unread([first], Level.L3)
    assert due(story) == [third, second, first]


def test_a_try_forgets_nothing_of_the_last_full_read(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = published(story, (0, 0, 5))
    story.ledger.record_scrub(batch, {}, is_clean=True)
    before = story.ledger.scrub_standing(FEED)
    story.ledger.record_unread([batch], Level.L3)
    assert due(story) == []
    assert story.ledger.scrub_standing(FEED) == before


def test_offsets_that_could_not_be_read_stay_due_behind_all_others(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    sick, doubled, fresh = (published(story, (0, each, each + 5)) for each in (0, 5, 10))
    story.ledger.record_offsets_look(doubled, is_clean=False)
    story.ledger.record_unread([sick], Level.L2)
    found = story.ledger.offsets_due(FEED, WEEK, 9)
    assert [each.batch_id for each in found] == [doubled, fresh, sick]

    story.ledger.record_unread([doubled], Level.L2)
    found = story.ledger.offsets_due(FEED, WEEK, 9)
    assert [each.batch_id for each in found] == [fresh, sick, doubled]


def a_sample(turn: int, offsets: int = 10, not_compared: str | None = None) -> TakenSample:
    return TakenSample(turn, slices=4, span=5, offsets=offsets, not_compared=not_compared)


def samples_due(story: LedgerStory, **log_starts: int) -> list[tuple[BatchId, int]]:
    starts = {int(name[1:]): start for name, start in log_starts.items()}
    topic_id = story.ledger.accounts(FEED).generations[0].topic_id
    return [(each.batch_id, each.turn) for each in story.ledger.samples_due(FEED, topic_id, starts)]


def test_what_the_log_still_has_is_compared_in_turn(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    first, second = published(story, (0, 0, 5)), published(story, (0, 5, 9))
    story.committed((0, 9, 20))
    assert samples_due(story, p0=0) == [(second, 0), (first, 0)], "the newest first"
    assert samples_due(story, p0=4) == [(second, 0), (first, 0)]
    assert samples_due(story, p0=5) == [(second, 0)]
    assert samples_due(story, p0=9) == samples_due(story, p1=0) == samples_due(story) == []
    assert not story.ledger.samples_due(FEED, "another", {0: 0})

    story.ledger.record_sample(first, a_sample(0), is_clean=True)
    assert samples_due(story, p0=0) == [(second, 0), (first, 1)]
    story.ledger.record_sample(second, a_sample(0, 0, "it is away"), is_clean=True)
    assert samples_due(story, p0=0) == [(first, 1), (second, 1)], "a try is a turn, too"


def test_only_the_newest_batches_are_looked_at_where_that_is_asked_for(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    _, second, third = (published(story, (0, each, each + 5)) for each in (0, 5, 10))
    topic_id = story.ledger.accounts(FEED).generations[0].topic_id
    found = story.ledger.samples_due(FEED, topic_id, {0: 0}, newest=2)
    assert [each.batch_id for each in found] == [third, second]


def test_a_sample_is_no_look_at_all_offsets_and_no_full_read(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    batch = published(story, (0, 0, 5))
    story.ledger.record_sample(batch, a_sample(0), is_clean=True)
    assert [each.batch_id for each in story.ledger.offsets_due(FEED, WEEK, 9)] == [batch]
    assert due(story) == [batch]
    assert story.ledger.scrub_standing(FEED).never_read == 1


DAY = timedelta(days=1)
ONE, OTHER = DirectoryLook(b"1" * 32), DirectoryLook(b"2" * 32)


def test_two_looks_of_which_each_forgets_what_the_other_keeps_do_not_block_each_other(
    story: LedgerStory,
) -> None:
    story.open({0: (0, 100)})
    kept, forgotten = (story.committed((0, each, each + 5)).batch_id for each in (0, 5))
    ledger, now = story.ledger, story.ledger.clock()
    ledger.note_directory_looks({kept: ONE, forgotten: ONE}, [], compared_at=now)
    with ThreadPoolExecutor(1) as pool, psycopg.connect(story.dsn, user=OWNER_ROLE) as other:
        lock = "UPDATE directory_look SET digest = digest WHERE batch_id = %s"
        other.execute(lock, [forgotten])
        look = pool.submit(ledger.note_directory_looks, {kept: OTHER}, [forgotten], compared_at=now)
        until_somebody_waits(story)
        other.execute(lock, [kept])
        other.commit()
        look.result()
    assert ledger.directory_looks(FEED, DAY) == {kept: OTHER}


def test_how_a_directory_is_shown_is_noted_with_the_entries_on_record_alone(
    story: LedgerStory,
) -> None:
    story.open({0: (0, 100)})
    same, other, forgotten = (story.committed((0, each, each + 5)).batch_id for each in (0, 5, 10))
    ledger, now = story.ledger, story.ledger.clock()
    ledger.note_directory_looks({same: ONE, other: OTHER}, [], compared_at=now)
    shown = replace(ONE, shown_as=b"3" * 32)
    ledger.note_shown_directories({same: shown, other: shown, forgotten: shown})
    assert ledger.directory_looks(FEED, DAY) == {same: shown, other: OTHER}
    with psycopg.connect(story.dsn, user=OWNER_ROLE) as hand:
        found = hand.execute("SELECT DISTINCT compared_at FROM directory_look").fetchall()
    assert found == [(now,)]


def test_places_are_those_of_the_directories(story: LedgerStory) -> None:
    story.open({0: (0, 100)})
    committed = [story.committed((0, each, each + 5)).batch_id for each in (0, 5, 10)]
    ledger = story.ledger
    all_of_them, places = ledger.directories(FEED), ledger.batch_places(FEED)
    assert [each.batch_id for each in places] == committed
    for place, directory in zip(places, all_of_them, strict=True):
        assert place.path == directory.path
        assert place.staging == directory.staging
        assert place.is_published == directory.is_published
        assert place.manifest_sha256 == directory.manifest_sha256
    assert ledger.directories(FEED, committed[1:2]) == all_of_them[1:2]
    assert ledger.directories(FEED, []) == []
