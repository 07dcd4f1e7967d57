"""A schedule says how often it comes round, and where its windows begin and end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from croniter import croniter  # type: ignore[import-untyped]

# Enough for a week of runs every two hours: what pauses over night or at weekends is seen.
_RUNS_AHEAD: Final = 84
_MINUTE: Final = timedelta(minutes=1)
# By as much, at most, are clocks put forward or back.
_CLOCK_CHANGE: Final = timedelta(hours=2)


def longest_pause(cron: str, now: datetime) -> timedelta:
    """The longest time between two of the runs that come next.

    >>> from datetime import UTC
    >>> longest_pause("0 8 * * 1-5", datetime(2026, 11, 2, tzinfo=UTC))
    datetime.timedelta(days=3)
    """
    runs = croniter(cron, now)
    instants: list[datetime] = [runs.get_next(datetime) for _ in range(_RUNS_AHEAD)]
    return max(later - earlier for earlier, later in pairwise(instants))


@dataclass(frozen=True, slots=True)
class WindowSchedule:
    """The windows of a schedule: the data intervals that Airflow gives its runs.

    >>> hours = WindowSchedule("0 * * * *", "UTC")
    >>> hours.at_or_before(datetime(2026, 11, 1, 6, 59, tzinfo=UTC)).isoformat()
    '2026-11-01T06:00:00+00:00'
    >>> hours.after(datetime(2026, 11, 1, 7, tzinfo=UTC)).isoformat()
    '2026-11-01T08:00:00+00:00'
    """

    cron: str
    timezone: str

    def at_or_before(self, instant: datetime) -> datetime:
        """The newest instant of the schedule at or before this one, in UTC."""
        return next(
            max(before)
            for near in self._near(instant, -_MINUTE)
            if (before := [each for each in near if each <= instant])
        )

    def after(self, instant: datetime) -> datetime:
        """The oldest instant of the schedule after this one, in UTC."""
        return next(
            min(later)
            for near in self._near(instant, _MINUTE)
            if (later := [each for each in near if each > instant])
        )

    def _near(self, instant: datetime, step: timedelta) -> Iterator[list[datetime]]:
        """The schedule's next instants in the step's direction; several where clocks are changed.

        As in Airflow (`CronMixin`): a schedule goes by the clock on the wall, and of a time that
        comes twice in autumn the second counts. One that has every hour has that hour twice.
        """
        zone = ZoneInfo(self.timezone)
        wall = instant.astimezone(zone).replace(tzinfo=None)
        has_every_hour = croniter.expand(self.cron)[0][1] == ["*"]
        # An expression knows whole minutes, and croniter tells only what is strictly before. A time
        # on the wall that is behind may come again, so the search begins that much further back.
        begin = wall.replace(second=0, microsecond=0) - min(step, timedelta())
        if not has_every_hour:
            begin -= _CLOCK_CHANGE * (step / _MINUTE)
        runs = croniter(self.cron, begin)
        while True:
            found = runs.get_next(datetime) if step > timedelta() else runs.get_prev(datetime)
            near = [_in_utc(found, zone)]
            by_the_clock = instant.astimezone(UTC) + (found - wall)
            if has_every_hour and _is_at(self.cron, by_the_clock.astimezone(zone)):
                near.append(by_the_clock)
            yield near


def _in_utc(wall: datetime, zone: ZoneInfo) -> datetime:
    """The instant of a wall-clock time: the second one in autumn, moved on where spring has none.

    >>> berlin = ZoneInfo("Europe/Berlin")
    >>> _in_utc(datetime(2026, 10, 25, 2, 30), berlin).isoformat()
    '2026-10-25T01:30:00+00:00'
    >>> _in_utc(datetime(2026, 3, 29, 2, 30), berlin).isoformat()
    '2026-03-29T01:30:00+00:00'
    """
    second = wall.replace(tzinfo=zone, fold=1).astimezone(UTC)
    if second.astimezone(zone).replace(tzinfo=None) == wall:
        return second
    return wall.replace(tzinfo=zone).astimezone(UTC)


def _is_at(cron: str, local: datetime) -> bool:
    """True when the schedule has this minute on the clock on the wall."""
    return bool(croniter.match(cron, local.replace(tzinfo=None)))
