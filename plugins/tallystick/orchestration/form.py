"""The form of an ingest run that is started by hand."""

from __future__ import annotations

from typing import Final

from airflow.sdk import Param

from tallystick.settings.feed import Feed

_BY_RECORD_TIME: Final = (
    "plan.until is 'window_end': each record lands under its own window, older ones too."
)
_BY_RUN: Final = (
    "plan.until is 'now': a run with an old window puts current records under that window. Use"
    " 'window_end' in the feed file to keep directories by record time."
)


def form(feed: Feed) -> dict[str, Param]:
    """The parameters of an ingest run; a scheduled run leaves them as they are."""
    where = _BY_RUN if feed.plan.until == "now" else _BY_RECORD_TIME
    return {
        "window_start": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Window start",
            description=(
                f"First instant of the window (included). Empty: the run's own interval. {where}"
            ),
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
            description="Say in the log of the task plan what would be landed; change nothing.",
        ),
    }
