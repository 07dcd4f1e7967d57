"""Airflow 3.1 has these parts in other places than 3.2 and 3.3.

What one module alone needs it finds there: metrics (`stats`), teams (`web.access`), policies of
retries (`failures`). `tests/installed` runs the package with each of the three.
"""

from __future__ import annotations

from typing import Any, Final

try:
    from airflow.sdk import CronDataIntervalTimetable, CronTriggerTimetable
    from airflow.sdk.configuration import conf
    from airflow.sdk.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSensorTimeout,
        AirflowSkipException,
        DownstreamTasksSkipped,
    )

    _BACKOFF: bool | int = 2
except ImportError:  # 3.1: the Task SDK had none of these yet
    from airflow.configuration import conf
    from airflow.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSensorTimeout,
        AirflowSkipException,
        DownstreamTasksSkipped,
    )
    from airflow.timetables.interval import CronDataIntervalTimetable
    from airflow.timetables.trigger import CronTriggerTimetable

    _BACKOFF = True  # 3.1 knows no other factor

BACKOFF_BY_TWO: Final = _BACKOFF
"""For `retry_exponential_backoff`: each wait is twice as long as the one before."""


def newest_events(events: Any, most: int) -> list[Any]:
    """So many of an inlet's asset events at most, the newest first."""
    if isinstance(events, list):  # 3.1 gives all of them at once
        return sorted(events, key=lambda event: event.timestamp, reverse=True)[:most]
    return list(events.ascending(False).limit(most))


__all__ = [
    "BACKOFF_BY_TWO",
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowSensorTimeout",
    "AirflowSkipException",
    "CronDataIntervalTimetable",
    "CronTriggerTimetable",
    "DownstreamTasksSkipped",
    "conf",
    "newest_events",
]
