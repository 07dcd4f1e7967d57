"""The windows that a plan cuts are the data intervals that Airflow gives its runs."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import assume, given

from tallystick.settings.cadence import WindowSchedule
from tests.support.strategies import SCHEDULES, instants


@pytest.mark.parametrize(("cron", "timezone"), SCHEDULES)
@given(instant=instants)
def test_borders_are_those_of_airflows_data_intervals(
    cron: str, timezone: str, instant: datetime
) -> None:
    import pendulum
    from airflow.timetables.interval import CronDataIntervalTimetable

    timetable = CronDataIntervalTimetable(cron, timezone)
    theirs = timetable.infer_manual_data_interval(run_after=pendulum.instance(instant))
    # In the first of two equal hours Airflow names the end that is in the second.
    assume(theirs.end <= instant)

    assert WindowSchedule(cron, timezone).at_or_before(instant) == theirs.end
