"""How often a schedule comes round."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from croniter import croniter  # type: ignore[import-untyped]

# Enough for a week of runs every two hours: what pauses over night or at weekends is seen.
_RUNS_AHEAD: Final = 84


def longest_pause(cron: str, now: datetime) -> timedelta:
    """The longest time between two of the runs that come next.

    >>> from datetime import UTC
    >>> longest_pause("0 8 * * 1-5", datetime(2026, 11, 2, tzinfo=UTC))
    datetime.timedelta(days=3)
    """
    runs = croniter(cron, now)
    instants: list[datetime] = [runs.get_next(datetime) for _ in range(_RUNS_AHEAD)]
    return max(later - earlier for earlier, later in pairwise(instants))
