"""One line out of hundreds."""

from __future__ import annotations

import pytest

from tallystick.spark.causes import LIMIT, cause_of, failure_of, record_failure_of

BY_PY4J = """An error occurred while calling o67.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 4 times
\tat org.apache.spark.A(B.scala:1)

Driver stacktrace:
\tat org.apache.spark.C(D.scala:2)
Caused by: org.apache.kafka.X: Some data may have been lost
because they are gone
\tat e.F(G.java:3)
\t... 32 more
Caused by: java.lang.ArithmeticException: long overflow
\tat h.I(J.java:4)
\t... 41 more
"""


def test_what_was_reported_and_the_innermost_cause() -> None:
    assert cause_of(BY_PY4J) == (
        "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 4 times;"
        " caused by java.lang.ArithmeticException: long overflow"
    )


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("[PATH_NOT_FOUND] Path does not exist: x.", "[PATH_NOT_FOUND] Path does not exist: x."),
        ("a\nb\n\nJVM stacktrace:\nx.Y\n\tat z", "a b"),
        ("A: disk full\nCaused by: disk full\n", "A: disk full"),
        (": A: gone\n\tat b.C()\n\tSuppressed: D: Full stacktrace\n\t\tat e.F()", "A: gone"),
        ("", "no reason was given"),
        ("\n\tat a.B(C.scala:1)", "no reason was given"),
    ],
)
def test_short_texts(text: str, cause: str) -> None:
    assert cause_of(text) == cause


def test_a_cause_is_never_long_and_keeps_the_innermost() -> None:
    cause = cause_of("x" * 5000 + "\nCaused by: disk full")

    assert len(cause) <= LIMIT
    assert cause.endswith("; caused by disk full")


class Py4JJavaError(Exception):
    """Stands for py4j's class of this name, which cannot be made without a JVM."""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (Py4JJavaError(": x.Y: gone"), "x.Y: gone"),
        (ValueError("no landing plan"), "ValueError: no landing plan"),
        (KeyError(), "KeyError: no reason was given"),
    ],
)
def test_the_class_is_named_where_it_says_something(error: Exception, line: str) -> None:
    assert failure_of(error) == line


def test_a_record_fails_with_the_same_words_whatever_task_read_it() -> None:
    text = (
        ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 29.0"
        " failed 4 times, most recent failure: Lost task 0.3 in stage 29.0 (TID 71) (localhost"
        " executor driver): java.lang.ArithmeticException: long overflow\n\tat a.B(C.java:1)"
    )

    assert record_failure_of(Py4JJavaError(text)) == "java.lang.ArithmeticException: long overflow"
