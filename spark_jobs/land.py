"""What spark-submit starts to land one batch: `land.py URI-OF-PLAN.JSON`. It decides nothing.

The package comes with the application (`--py-files`). Standard output gets plain lines: the
application's id, what is landed, that it reads, and that it is done or why not. Exit code 1 means
that nothing of the output may be used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.spark.application import run, say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def landed(spark: SparkSession, text: str) -> str:
    """Land the plan; the line that says so."""
    from tallystick.domain.batches.landing import LandingPlan
    from tallystick.spark.begun import READING, tasks_watched
    from tallystick.spark.landing import land

    plan = LandingPlan.from_json(text)
    ranges = [each for scan in plan.scans for each in scan.ranges]
    say(
        f"landing batch {plan.batch_id}: {len(ranges)} ranges of {plan.topic},"
        f" {sum(each.span for each in ranges)} offsets, into {plan.output}"
    )
    with tasks_watched(spark, lambda: say(READING)):
        land(spark, plan)
    return f"landed batch {plan.batch_id}"


if __name__ == "__main__":
    run("landing", landed)
