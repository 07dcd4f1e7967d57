"""Before an application has begun to read records, its failure is no record's fault."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

READING: Final = "reading"
"""What an application says once it has begun."""
# Spark 4.2 names the record that it can't show, in place of the task that has read it.
_OF_TASK: Final = re.compile(
    r"\bTask \d+ in stage [\d.]+ failed|\bRecord at topic \S+ partition \d+ offset \d+"
)
_GROUP: Final = "tallystick"
_EVERY_SECONDS: Final = 0.2
_MOMENT_SECONDS: Final = 5.0


@dataclass
class Reading:
    """Tells once that a task has begun."""

    told: Callable[[], object]
    is_told: bool = False

    def hear(self, has_begun: object) -> None:
        """Says whether a task is known to have begun by now."""
        if has_begun and not self.is_told:
            self.told()
            self.is_told = True


@contextmanager
def reading(
    told: Callable[[], object], is_lost: Callable[[BaseException], bool] = lambda _: False
) -> Iterator[Reading]:
    """`told` is called at the end, if not before; not where the block fails without a task.

    `is_lost` tells an error with which a server has died that was well before the block: nobody
    knows if a task had begun, and a record may have ended it.
    """
    found = Reading(told)
    try:
        yield found
    except Exception as error:
        found.hear(_OF_TASK.search(str(error)) or is_lost(error))
        raise
    found.hear(has_begun=True)


@contextmanager
def tasks_watched(spark: SparkSession, told: Callable[[], object]) -> Iterator[None]:
    """`told` is called as soon as a task of the block's has begun: one may end its application."""
    spark.sparkContext.setJobGroup(_GROUP, "")
    tracker, ended = spark.sparkContext.statusTracker(), threading.Event()

    def watch() -> None:
        with suppress(Exception):  # the JVM is gone: whoever works with it says so
            while not found.is_told and not ended.wait(_EVERY_SECONDS):
                found.hear(_has_task(tracker))

    with reading(told) as found:
        thread = threading.Thread(target=watch, name="tasks", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(_MOMENT_SECONDS)


def _has_task(tracker: StatusTracker) -> bool:
    jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(_GROUP)))
    stages = filter(None, (tracker.getStageInfo(each) for job in jobs for each in job.stageIds))
    return any(each.numActiveTasks or each.numCompletedTasks for each in stages)
