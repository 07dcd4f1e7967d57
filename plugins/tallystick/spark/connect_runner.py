"""Runs landings, searches and scrubs in sessions of a Spark Connect server.

The functions are those that spark-submit starts, and they run here: whatever started the server, it
needs none of our code. It decides nothing about them.

The server says every two seconds, unless it is set otherwise, how many tasks of a request have
ended; a source that is no file, such as Kafka, has no bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.rows.scrub import ScrubResult
from tallystick.errors import (
    ApplicationFailed,
    ApplicationOverdue,
    IngestionError,
    ScrubFailed,
)
from tallystick.ports.progress import Progress, Told, harmless
from tallystick.ports.spark_runner import LandingOrder, ScrubOrder
from tallystick.spark import scrubbing, searching
from tallystick.spark.begun import reading
from tallystick.spark.causes import failure_of
from tallystick.spark.connect_errors import is_lost
from tallystick.spark.connect_server import ConnectServer, OpenSession, session_of
from tallystick.spark.known_row import require_own_functions
from tallystick.spark.landing import land
from tallystick.spark.overdue import LONGEST_READ, Deadline, ended_after
from tallystick.spark.session_settings import session_settings
from tallystick.spark.unreached import failure

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

logger = logging.getLogger(__name__)

LANDING: Final = "landing"
SEARCH: Final = "search"
SCRUB: Final = "scrub"
# spark.connect.execute.manager.detachedTimeout is five minutes; it is looked at twice a minute.
_DETACHED: Final = timedelta(minutes=6)


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of all requests in a block, so far."""

    done: int
    total: int
    bytes_read: int
    has_begun: bool = False
    """True once one of them was seen at work."""


@dataclass(frozen=True, slots=True)
class ConnectRunner:
    """Fulfils the SparkRunner port with one session for each landing, search or scrub."""

    server: ConnectServer
    feed_conf: Mapping[str, str]
    longest: timedelta

    @property
    def longest_orphan(self) -> timedelta:
        """Until the server itself ends what nobody listens to."""
        return _DETACHED

    def interrupt(self, attempt_id: str) -> bool:
        """End the attempt's sessions, whoever opened them; False once nobody answers."""
        sessions = (session_of(attempt_id, work) for work in (LANDING, SEARCH))
        return all(self.server.end_session(each) for each in sessions)

    def run(self, order: LandingOrder, *, started: Callable[[str], None]) -> None:
        """Return when the plan is landed; raises ApplicationFailed, -Overdue, SparkUnavailable."""
        session_id = session_of(order.attempt_id, LANDING)
        plan = LandingPlan.from_json(order.plan_text)
        offsets = sum(each.span for each in plan.ranges)
        with (
            _failing(partial(failure, order), session_id),
            self._working(session_id, f"batch {order.batch_id}", order.plan_uri) as (spark, _),
        ):
            order.rehearse(self.server.master, lambda uri: spark.range(1).write.parquet(uri))
            with reading(partial(started, f"connect:{session_id}"), is_lost) as found:

                def hear(tasks: Tasks) -> None:
                    found.hear(tasks.has_begun or tasks.done)
                    _tell_landed(order.told, offsets, tasks)

                with tasks_counted(spark, hear):
                    land(spark, plan)

    def search(self, order: LandingOrder, *, noted: Callable[[str], None]) -> None:
        """Return when the unreadable offsets were looked for; raises as `run` does.

        A server that dies is blamed on no record: it may be others' work that killed it. A search
        that hung goes on behind the read that it hung at, in the same session.
        """
        session_id, work = session_of(order.attempt_id, SEARCH), f"batch {order.batch_id}"
        with (
            _failing(partial(failure, order), session_id),
            self._working(session_id, work, order.plan_uri, is_opened_again=True) as working,
        ):
            spark, deadline = working

            def say(note: str) -> None:
                deadline.expect(LONGEST_READ)
                noted(note)

            plan = searching.plan_of(order.plan_text)
            found = searching.search(
                spark,
                plan,
                say,
                is_last=lambda error: deadline.has_passed or is_lost(error),
            )
            searching.write_result(spark, plan, found)

    def scrub(self, order: ScrubOrder) -> ScrubResult:
        """Returns what the files hold; raises ScrubFailed, else as `run`."""
        session_id, work = session_of(order.scrub_id, SCRUB), f"scrub {order.scrub_id}"
        with (
            _failing(partial(ScrubFailed, order.scrub_id), session_id),
            self._working(session_id, work, order.plan_uri, reads_kafka=False) as (spark, _),
        ):
            plan = order.plan
            size = sum(each.length_bytes for each in plan.files)
            # Set once: what follows finds them as it needs them, and changes few.
            with session_settings(spark, scrubbing.SESSION_SETTINGS):
                with tasks_counted(spark, partial(_tell_scrubbed, order.told, size)):
                    found = scrubbing.scrub(spark, plan, is_no_file=is_lost)
                require_own_functions(spark, listed=_finds_fault(found))
            return found

    @contextmanager
    def _working(
        self,
        session_id: str,
        work: str,
        plan_uri: str,
        *,
        reads_kafka: bool = True,
        is_opened_again: bool = False,
    ) -> Iterator[tuple[SparkSession, Deadline]]:
        """The session. When its time is over all its requests end: ApplicationOverdue is raised."""
        logger.info("%s: session %s of %s", work, session_id, self.server.master)
        sessions: list[OpenSession] = []

        def end() -> None:
            for each in sessions:
                each.close()

        with ended_after(self.longest, end) as deadline:
            try:
                with self.server.session(
                    session_id,
                    self.feed_conf,
                    reads_kafka=reads_kafka,
                    reaches=plan_uri,
                    opened=sessions.append,
                    is_opened_again=is_opened_again,
                ) as spark:
                    yield spark, deadline
            except Exception as error:
                if not deadline.has_passed:
                    raise
                raise _overdue(work, session_id, deadline) from error
            if deadline.has_passed:
                raise _overdue(work, session_id, deadline)


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


def _tell_landed(told: Told, offsets: int, tasks: Tasks) -> None:
    """A task reads what one file holds; how many offsets these are is estimated by their share."""
    done = offsets * tasks.done // tasks.total if tasks.total else 0
    files = f"{tasks.done} of {tasks.total} files"
    told(Progress("land", done, offsets, "offsets", is_estimate=True, note=files))


def _tell_scrubbed(told: Told, size: int, tasks: Tasks) -> None:
    told(Progress("scrub", tasks.bytes_read, size, "bytes"))


def _finds_fault(result: ScrubResult) -> bool:
    """True where lists of offsets were asked for, and did not show that all is well."""
    slices = (each for file in result.files for each in file.slices)
    return any(each.failure for each in result.files) or any(
        not each.has_its_offsets for each in slices
    )


def _overdue(work: str, session_id: str, deadline: Deadline) -> ApplicationOverdue:
    return ApplicationOverdue(work, f"connect:{session_id}", str(deadline.limit))


@contextmanager
def _failing(kind: Callable[[str, str], ApplicationFailed], session_id: str) -> Iterator[None]:
    """Whatever Spark says as our error; our own pass."""
    try:
        yield
    except IngestionError:
        raise
    except Exception as error:
        raise kind(f"connect:{session_id}", failure_of(error)) from error
