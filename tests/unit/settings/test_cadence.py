"""Windows of a schedule, with and without a change of clocks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given

from tallystick.settings.cadence import WindowSchedule
from tests.support.strategies import SCHEDULES, instants


@pytest.mark.parametrize(("cron", "timezone"), SCHEDULES)
@given(instant=instants)
def test_every_instant_lies_between_two_borders(
    cron: str, timezone: str, instant: datetime
) -> None:
    schedule = WindowSchedule(cron, timezone)

    before, after = schedule.at_or_before(instant), schedule.after(instant)

    assert before <= instant < after
    assert before.utcoffset() == after.utcoffset() == timedelta(0)
    assert schedule.at_or_before(before) == before
    assert schedule.after(before) == after
    assert schedule.at_or_before(after) == after


def test_the_hour_that_comes_twice_is_two_windows() -> None:
    hourly = WindowSchedule("0 * * * *", "Europe/Berlin")
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)

    assert hourly.at_or_before(first) == datetime(2026, 10, 25, 0, tzinfo=UTC)
    assert hourly.after(first) == datetime(2026, 10, 25, 1, tzinfo=UTC)
    assert hourly.after(hourly.after(first)) == datetime(2026, 10, 25, 2, tzinfo=UTC)
