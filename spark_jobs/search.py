"""What spark-submit starts to find the offsets that can't be read: `search.py URI-OF-PLAN`.

It decides nothing. The package comes with the application (`--py-files`). Standard output gets
plain lines: the application's id, what is searched, a note before each read, and that it is done or
why not. Exit code 1 means that there is no result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.spark.application import run, say

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def searched(spark: SparkSession, text: str) -> str:
    """Carry the plan out and write its result; the line that says so."""
    from tallystick.spark.searching import plan_of, search, works_no_more, write_result

    plan = plan_of(text)
    ranges = plan.landing.ranges
    say(
        f"looking for unreadable offsets of batch {plan.landing.batch_id}: {len(ranges)} ranges of"
        f" {plan.landing.topic}, {sum(each.span for each in ranges)} offsets"
    )
    result = search(
        spark,
        plan,
        lambda note: say(f"note {note}"),
        is_last=lambda _: works_no_more(spark),
    )
    write_result(spark, plan, result)
    return f"found {len(result.unreadable)} unreadable offsets by {result.probes} reads"


if __name__ == "__main__":
    run("search", searched)
