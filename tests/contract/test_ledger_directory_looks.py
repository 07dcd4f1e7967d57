"""What the ledger promises of directories that were as committed when they were asked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from time import monotonic, sleep

import psycopg

from tallystick.ledger.proofs import DirectoryLook
from tests.support.ledger_server import OWNER_ROLE
from tests.support.ledger_story import FEED, LedgerStory

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
        wait_until_one_waits(story.dsn)
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


def wait_until_one_waits(dsn: str) -> None:
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    until = monotonic() + 30
    with psycopg.connect(dsn, user=OWNER_ROLE, autocommit=True) as hand:
        while hand.execute(waiting).fetchone() == (0,):
            assert monotonic() < until, "the look should wait for the other one"
            sleep(0.02)
