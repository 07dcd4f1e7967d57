"""A Spark Connect server counts how many tasks of a request have ended.

The server says so every two seconds, unless it is set otherwise. Tasks that have ended and bytes of
files are counted; a source that is no file, such as Kafka, has no bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tallystick.ports.progress import harmless

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of all requests in a block, so far."""

    done: int
    total: int
    bytes_read: int
    has_begun: bool = False
    """True once one of them was seen at work."""


@contextmanager
def tasks_counted(spark: SparkSession, counted: Callable[[Tasks], None]) -> Iterator[None]:
    """`counted` hears how far the block's requests have come; what it raises is no harm.

    Once the block has ended without an error, all its tasks are told as done: a server sends its
    last answer without waiting for its own count of tasks, which lags behind on a busy machine.
    """
    requests = _Requests()
    # Without this a request would fail by what only tells of it: the client catches nothing.
    tell = harmless(lambda now: counted(now()), what="Progress of Spark")

    def handler(**told: Any) -> None:
        tell(partial(requests.so_far, **told))

    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)
    tell(requests.ended)


class _Requests:
    """Adds up the requests: the client tells of one after the other."""

    def __init__(self) -> None:
        self._tasks: dict[str | None, Tasks] = {}

    def so_far(
        self, stages: Iterable[Any], inflight_tasks: int, operation_id: str | None, done: bool
    ) -> Tasks:
        known = list(stages)
        self._tasks[operation_id] = Tasks(
            sum(each.num_completed_tasks for each in known),
            sum(each.num_tasks for each in known),
            sum(each.num_bytes_read for each in known),
            inflight_tasks > 0,
        )
        return self._sum()

    def ended(self) -> Tasks:
        told = self._sum()
        return replace(told, done=told.total)

    def _sum(self) -> Tasks:
        told = self._tasks.values()
        return Tasks(
            sum(each.done for each in told),
            sum(each.total for each in told),
            sum(each.bytes_read for each in told),
            any(each.has_begun for each in told),
        )
