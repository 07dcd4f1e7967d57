"""Waiting for what other connections do, by asking the server: never a blind sleep."""

from __future__ import annotations

import time
from typing import Final

from tests.support.ledger_story import LedgerStory

_DEADLINE_SECONDS: Final = 20
_WAITING: Final = """
SELECT count(*) FROM pg_stat_activity
 WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def until_somebody_waits(story: LedgerStory, *, how_many: int = 1) -> None:
    """Return when so many connections of this database wait for a lock."""
    deadline = time.monotonic() + _DEADLINE_SECONDS
    with story.raw() as connection:
        while time.monotonic() < deadline:
            row = connection.execute(_WAITING.encode()).fetchone()
            if row and row[0] >= how_many:
                return
            time.sleep(0.005)
    raise AssertionError(f"nobody waited for a lock within {_DEADLINE_SECONDS} s")
