"""An application has begun to read once one of its tasks has."""

from __future__ import annotations

import pytest

from tallystick.spark.begun import reading

OF_TASK = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure:"
    " Lost task 0.0 in stage 3.0 (TID 2) (localhost executor driver): ArithmeticException"
)

OF_RECORD = (
    "(org.apache.spark.sql.kafka010.KafkaIllegalStateException) Record at topic orders partition 0"
    " offset 300 has timestamp value 1795000000000000000 that overflows"
)


def told_by(failure: str, *heard: bool) -> int:
    told: list[None] = []

    def work() -> None:
        with reading(lambda: told.append(None)) as found:
            for each in heard:
                found.hear(each)
            raise RuntimeError(failure)

    with pytest.raises(RuntimeError):
        work()
    return len(told)


def test_work_that_is_done_has_begun() -> None:
    told: list[None] = []
    with reading(lambda: told.append(None)):
        assert not told
    assert len(told) == 1


@pytest.mark.parametrize(
    ("failure", "heard", "times"),
    [
        ("Timed out waiting for a node assignment. Call: listNodes", (), 0),
        ("Permission denied: user=spark", (False, False), 0),
        (OF_TASK, (), 1),
        (OF_RECORD, (), 1),
        (OF_TASK, (True, True), 1),
        ("Cannot call methods on a stopped SparkContext", (False, True), 1),
    ],
)
def test_work_that_fails_has_begun_once_a_task_has(
    failure: str, heard: tuple[bool, ...], times: int
) -> None:
    assert told_by(failure, *heard) == times


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_server_that_dies_at_once_may_have_been_ended_by_a_record(is_lost: bool) -> None:
    told: list[None] = []
    with pytest.raises(RuntimeError), reading(lambda: told.append(None), lambda _: is_lost):
        raise RuntimeError("the server is gone")
    assert len(told) == is_lost
