"""How far a request to a Spark Connect server has come, as its tasks are counted there.

The server says so every two seconds, unless it is set otherwise. Tasks that have ended and bytes of
files are counted; a source that is no file, such as Kafka, has no bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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


@contextmanager
def tasks_counted(spark: SparkSession, counted: Callable[[Tasks], None]) -> Iterator[None]:
    """`counted` hears how far the block's requests have come; what it raises is no harm."""
    # Without this a request would fail by what only tells of it: the client catches nothing.
    handler = harmless(_Handler(counted), what="Progress of Spark")
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


class _Handler:
    """Adds up the requests: the client tells of one after the other."""

    def __init__(self, counted: Callable[[Tasks], None]) -> None:
        self._counted = counted
        self._requests: dict[str | None, Tasks] = {}

    def __call__(
        self, stages: Iterable[Any], inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        known = list(stages)
        self._requests[operation_id] = Tasks(
            sum(each.num_completed_tasks for each in known),
            sum(each.num_tasks for each in known),
            sum(each.num_bytes_read for each in known),
        )
        told = self._requests.values()
        self._counted(
            Tasks(
                sum(each.done for each in told),
                sum(each.total for each in told),
                sum(each.bytes_read for each in told),
            )
        )
