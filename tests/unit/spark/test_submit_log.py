"""What is understood of spark-submit's output."""

from __future__ import annotations

import logging

import pytest

from tallystick.spark.submit_runner import SubmitLog


def levels_of(*lines: str) -> list[int]:
    log = SubmitLog()
    return [log.add(line) for line in lines]


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("08:55:00 WARN Utils: x", logging.WARNING),
        ("26/11/21 08:55:00 ERROR Executor: x", logging.ERROR),
        ("2026-11-21 08:55:00,123 INFO Client: x", logging.INFO),
        ("08:55:00 FATAL x: y", logging.CRITICAL),
        ("08:55:00 DEBUG x: y", logging.DEBUG),
        ("WARNING: Using incubator modules: jdk.incubator.vector", logging.INFO),
        ("tallystick: landed batch b1", logging.INFO),
        ("tallystick: landing failed: x", logging.ERROR),
    ],
)
def test_a_line_is_logged_at_its_own_level(line: str, level: int) -> None:
    assert levels_of(line) == [level]


def test_a_stack_goes_with_its_message() -> None:
    assert levels_of(
        "08:55:00 ERROR Executor: Exception in task 0.0",
        "java.io.IOException: disk full",
        "\tat a.B(C.scala:1)",
        "Caused by: x",
        "08:55:01 WARN Utils: y",
        "tallystick: landed batch b1",
    ) == [logging.ERROR] * 4 + [logging.WARNING, logging.INFO]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["tallystick: application local-1795250896971"], "local-1795250896971"),
        (["INFO Client: Submitted application application_17_0042"], "application_17_0042"),
        (
            ["INFO Client: Application report for application_17_0042 (state: ACCEPTED)"],
            "application_17_0042",
        ),
        (
            [
                "INFO Client: Not copying hdfs:/u/bob/.sparkStaging/application_17_0001/libs.zip",
                "INFO YarnClientImpl: Submitted application application_17_0042",
            ],
            "application_17_0042",
        ),
        (["WARN Client: queue etl is full of application_17_0001"], None),
        (
            [
                "INFO LoggingPodStatusWatcherImpl: Application status for"
                " spark-0123456789abcdef0123456789abcdef (phase: Running)"
            ],
            "spark-0123456789abcdef0123456789abcdef",
        ),
        (["x tallystick: application no"], None),
        (["tallystick: application app-1", "tallystick: application app-2"], "app-1"),
        ([], None),
    ],
)
def test_the_application_is_the_first_that_is_named(lines: list[str], expected: str | None) -> None:
    log = SubmitLog()
    for line in lines:
        log.add(line)

    assert log.application_id == expected


@pytest.mark.parametrize(
    ("lines", "exit_code", "reason"),
    [
        (["tallystick: landing failed: disk full", "08:55:00 WARN Shutdown: x"], 1, "disk full"),
        (
            ['Exception in thread "main" x.SparkException: Master must be yarn', "\tat a.B(C:1)"],
            1,
            'exit code 1: Exception in thread "main" x.SparkException: Master must be yarn',
        ),
        (
            ["Traceback (most recent call last):", "ModuleNotFoundError: No module named 'x'", ""],
            1,
            "exit code 1: ModuleNotFoundError: No module named 'x'",
        ),
        (
            ["a.B: x", "Caused by: java.io.IOException: disk full", "\t... 3 more"],
            1,
            "exit code 1: java.io.IOException: disk full",
        ),
        (
            [
                "08:55:00 ERROR Client: Application diagnostics message: AM Container exited"
                " with  exitCode: 137",
                'Exception in thread "main" x.SparkException: Application application_1_1 finished'
                " with failed status",
            ],
            1,
            "AM Container exited with  exitCode: 137",
        ),
        (["Error: Failed to load class X."], 101, "exit code 101: Error: Failed to load class X."),
        (["tallystick: application a", ""], -9, "killed by signal 9: tallystick: application a"),
        ([], 137, "exit code 137: it said nothing"),
    ],
)
def test_the_reason_is_the_last_meaningful_line(
    lines: list[str], exit_code: int, reason: str
) -> None:
    log = SubmitLog()
    for line in lines:
        log.add(line)

    assert log.reason(exit_code) == reason


def test_a_reason_is_never_long() -> None:
    log = SubmitLog()
    log.add("Error: " + "x" * 10_000)

    assert len(log.reason(1)) <= 1000
