"""Lands parts of a batch and keeps nothing, to find the offsets that Spark can't read or write.

One application does it all, so a probe costs a short job and no start. It names what failed; what
that means is said elsewhere.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from tallystick.domain.plain_json import from_plain, to_plain
from tallystick.domain.planning.unreadable import (
    Pieces,
    ReadNote,
    SearchPlan,
    SearchResult,
    after_known,
    searched,
)
from tallystick.spark.application import write_text
from tallystick.spark.causes import record_failure_of
from tallystick.spark.landing import land

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def plan_of(text: str) -> SearchPlan:
    """The plan; ValueError when the text is none."""
    return from_plain(SearchPlan, json.loads(text))


def search(
    spark: SparkSession,
    plan: SearchPlan,
    say: Callable[[str], None],
    *,
    is_last: Callable[[Exception], bool] = lambda _: False,
) -> SearchResult:
    """The offsets of the plan that can't be read; no read begins after the plan's time.

    `say` is called with a note before each read, for the read may end the application, and at the
    end, for what comes then is no read's fault. An error for which `is_last` holds is raised:
    any read after it would fail for the same cause, whatever its records are.
    """
    ends_at = time.monotonic() + plan.longest_seconds
    before: list[str | None] = list(plan.known)

    def note(*, is_end: bool = False) -> None:
        came = before[-1] if before else None
        say(json.dumps(to_plain(ReadNote(len(before), came, is_end))))

    def read(pieces: Pieces) -> str | None:
        note()
        before.append(failure(pieces))
        return before[-1]

    def failure(pieces: Pieces) -> str | None:
        try:
            land(spark, plan.landing_of(pieces), mode="overwrite")
        except Exception as error:
            if is_last(error):
                raise
            return record_failure_of(error)
        return None

    result = searched(
        plan.landing.ranges,
        plan.logs,
        after_known(plan.known, read),
        seed=plan.landing.attempt_id,
        has_time=lambda: time.monotonic() < ends_at,
    )
    note(is_end=True)
    return result


def works_no_more(spark: SparkSession) -> bool:
    """True when Spark fails at what has no record: the application is ending.

    A driver that is short of memory goes on in Python while its JVM shuts down. Each of its reads
    fails then, also of records that can be read.
    """
    try:
        spark.range(1).collect()
    except Exception:  # noqa: BLE001 - whatever it is, nothing of a record has caused it
        return True
    return False


def write_result(spark: SparkSession, plan: SearchPlan, result: SearchResult) -> None:
    """Write the result as one line of text in one file of the plan's output directory."""
    write_text(spark, json.dumps(to_plain(result)), plan.output, plan.landing.replication)
