"""What spark-submit starts to read landed files in full: `scrub.py URI-OF-SCRUB.JSON`.

It decides nothing. The package comes with the application (`--py-files`). Standard output gets
three plain lines: the application's id, what is read, and that it is done or why not. Exit code 1
means that there is no result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.spark.application import run, say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def scrubbed(spark: SparkSession, text: str) -> str:
    """Carry the plan out and write its result; the line that says so."""
    from tallystick.domain.rows.scrub import ScrubPlan
    from tallystick.spark.scrubbing import scrub, write_result

    plan = ScrubPlan.from_json(text)
    size = sum(each.length_bytes for each in plan.files)
    say(f"reading {len(plan.files)} files of {size} bytes in full: scrub {plan.scrub_id}")
    result = scrub(spark, plan)
    write_result(spark, plan, result)
    unread = [each.name for each in result.files if each.failure]
    return f"scrubbed {len(plan.files) - len(unread)} files, {len(unread)} could not be read"


if __name__ == "__main__":
    run("scrub", scrubbed)
