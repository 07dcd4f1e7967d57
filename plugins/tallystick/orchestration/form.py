"""The form of an ingest run that is started by hand."""

from __future__ import annotations

from airflow.sdk import Param


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
            description="Say in the log of the task plan what would be landed; change nothing.",
        ),
    }
