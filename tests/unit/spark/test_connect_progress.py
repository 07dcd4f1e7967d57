"""What Spark's client tells of a request is added up; nothing of it can break the request."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from pyspark.sql.connect.shell.progress import Progress as Request
from pyspark.sql.connect.shell.progress import StageInfo

from tallystick.spark.connect_runner import Tasks, tasks_counted


class Session:
    """Keeps handlers as Spark's session does, and tells them with Spark's own class."""

    def __init__(self) -> None:
        self.handlers: list[Any] = []

    def registerProgressHandler(self, handler: Any) -> None:
        self.handlers.append(handler)

    def removeProgressHandler(self, handler: Any) -> None:
        self.handlers.remove(handler)

    def request(self, name: str, *stages: StageInfo) -> None:
        with Request(handlers=self.handlers, operation_id=name) as request:
            if stages:
                request.update_ticks(stages, 1)


def stage(done: int, total: int, size: int = 0) -> StageInfo:
    return StageInfo(1, total, done, size, done == total)


def test_tasks_and_bytes_are_added_up_over_stages_and_requests() -> None:
    session, told = Session(), list[Tasks]()
    with tasks_counted(session, told.append):  # type: ignore[arg-type]
        session.request("a", stage(1, 2, 10), stage(0, 3))
        session.request("b", stage(2, 2, 5))
        session.request("c")

    assert told[0] == Tasks(1, 5, 10, has_begun=True)
    assert told[-2] == Tasks(3, 7, 15, has_begun=True)
    assert session.handlers == []


def test_all_tasks_are_told_as_done_once_the_work_is_though_the_server_counts_late() -> None:
    session, told = Session(), list[Tasks]()
    with tasks_counted(session, told.append):  # type: ignore[arg-type]
        session.request("a", stage(5, 6, 10))

    assert told[-2:] == [Tasks(done, 6, 10, has_begun=True) for done in (5, 6)]


def test_who_hears_it_and_fails_is_told_of_once_and_asked_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    session, asked = Session(), list[Tasks]()

    def failing(tasks: Tasks) -> None:
        asked.append(tasks)
        raise ValueError("no such terminal")

    with (
        caplog.at_level(logging.WARNING, "tallystick"),
        tasks_counted(session, failing),  # type: ignore[arg-type]
    ):
        session.request("a", stage(1, 2))
        session.request("b", stage(1, 2))

    assert len(asked) == 1
    [record] = caplog.records
    assert record.getMessage() == "Progress of Spark is told no more; the work goes on."
    assert "no such terminal" in caplog.text


def test_work_that_fails_leaves_no_handler_and_is_not_told_as_done() -> None:
    session, told = Session(), list[Tasks]()

    def fail() -> None:
        session.request("a", stage(1, 2))
        raise RuntimeError

    with pytest.raises(RuntimeError), tasks_counted(session, told.append):  # type: ignore[arg-type]
        fail()
    assert session.handlers == []
    assert told[-1] == Tasks(1, 2, 0, has_begun=True)
