"""What spark-submit starts before anything is claimed: `rehearse.py URI-OF-REHEARSAL.JSON`.

It decides nothing. The package comes with the application (`--py-files`). Exit code 1 means that
nothing could be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.spark.application import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def rehearsed(spark: SparkSession, text: str) -> str:
    """Rehearse the plan; the line that says so."""
    from tallystick.domain.batches.rehearsal import RehearsalPlan
    from tallystick.spark.rehearsing import rehearse

    rehearse(spark, RehearsalPlan.from_json(text))
    return "rehearsed"


if __name__ == "__main__":
    run("rehearsal", rehearsed)
