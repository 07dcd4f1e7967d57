"""The form of a run that is started by hand, and the window that a run lands under."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Param

from tallystick.domain.window import Window
from tallystick.errors import ConfigurationError, WindowIncomplete

_INSTANT = "an instant with its time zone, such as 2026-11-01T06:00:00Z"


def form() -> dict[str, Param]:
    """The parameters of an ingest run; a scheduled run leaves them as they are."""
    return {
        "window_start": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Window start",
            description="First instant of the window (included). Empty: the run's own interval.",
        ),
        "window_end": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Window end",
            description="End of the window (excluded). Give both instants, or none.",
        ),
        "dry_run": Param(
            False,
            type="boolean",
            title="Dry run",
            description="Only say in the plan task's log what would be landed; change nothing.",
        ),
    }


def window_of(feed: str, context: Mapping[str, Any]) -> Window | None:
    """The form's window, else the run's data interval; None when the run has neither.

    Raises WindowIncomplete for half a window, ConfigurationError for an empty one.
    """
    params = context["params"]
    start, end = _instant(feed, params, "window_start"), _instant(feed, params, "window_end")
    if (start is None) != (end is None):
        missing = "window_start" if start is None else "window_end"
        raise WindowIncomplete(
            missing, None, "an instant, because the other one is given", where=f"feed {feed}"
        )
    if start is None or end is None:
        # A run by hand without a logical date has no interval: then these keys are missing.
        start, end = context.get("data_interval_start"), context.get("data_interval_end")
    if start is None or end is None:
        return None
    if start >= end:
        raise ConfigurationError(
            "window_end", end.isoformat(), f"an instant after {start.isoformat()}", where=f"feed {feed}"
        )
    return Window(start.astimezone(UTC), end.astimezone(UTC))


def _instant(feed: str, params: Mapping[str, Any], name: str) -> datetime | None:
    text = params.get(name)
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ConfigurationError(name, text, _INSTANT, where=f"feed {feed}")
    return found
