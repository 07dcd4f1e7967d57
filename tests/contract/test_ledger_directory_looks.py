"""What the ledger promises of directories that were as committed when they were asked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from time import monotonic, sleep

import psycopg

from tallystick.ports.proofs import DirectoryLook
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
    with ThreadPoolExecutor(1) as pool, psycopg.connect(story.dsn) as other:
        lock = "UPDATE directory_look SET digest = digest WHERE batch_id = %s"
        other.execute(lock, [forgotten])
        look = pool.submit(ledger.note_directory_looks, {kept: OTHER}, [forgotten], compared_at=now)
        wait_until_one_waits(story.dsn)
        other.execute(lock, [kept])
        other.commit()
        look.result()
    assert ledger.directory_looks(FEED, DAY) == {kept: OTHER}


def wait_until_one_waits(dsn: str) -> None:
    waiting = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )
    until = monotonic() + 30
    with psycopg.connect(dsn, autocommit=True) as hand:
        while hand.execute(waiting).fetchone() == (0,):
            assert monotonic() < until, "the look should wait for the other one"
            sleep(0.02)
