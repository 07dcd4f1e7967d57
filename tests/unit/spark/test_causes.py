"""Words of Spark, out of hundreds of lines: the cause, a damaged file, brokers out of reach."""

from __future__ import annotations

import pytest

from tallystick.errors import BrokersUnreached
from tallystick.ports.spark_runner import LandingOrder
from tallystick.spark.causes import LIMIT, cause_of, failure_of, record_failure_of
from tallystick.spark.scrubbing import is_damage
from tallystick.spark.unreached import failure, unreached_in

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


READING = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file hdfs://nn/a.parquet."


@pytest.mark.parametrize(
    ("reason", "damaged"),
    [
        ("ParquetDecodingException: could not verify page integrity, CRC checksum verification"
         " failed", True),
        ("RuntimeException: hdfs://nn/a.parquet is not a Parquet file. Expected magic number at"
         " tail, but found [0, 1, 2, 3]", True),
        ("RuntimeException: corrupted file: the footer index is not within the file", True),
        ("IOException: can not read class org.apache.parquet.format.PageHeader", True),
        ("ZstdIOException: Corrupted block detected", True),
        ("EOFException: Reached the end of stream with 9 bytes left to read", True),
        ("BlockMissingException: Could not obtain block: BP-1 file=/a.parquet", False),
        ("ConnectException: Connection refused", False),
        ("EOFException: Premature EOF: no length prefix available", False),
        ("IOException: Could not read footer for file; caused by SocketTimeoutException", False),
        ("AccessControlException: Permission denied: user=etl", False),
        ("FileNotFoundException: File does not exist: /a.parquet", False),
        ("OutOfMemoryError: Java heap space", False),
        ("could not read page; caused by BlockMissingException: Could not obtain block", False),
    ],
)  # fmt: skip
def test_only_bytes_that_did_arrive_prove_damage(reason: str, damaged: bool) -> None:
    assert is_damage(f"{READING}; caused by {reason}") == damaged


PLAN = '{"kafka_options": {"kafka.bootstrap.servers": "one:9092,two:9092"}}'
ORDER = LandingOrder("orders", "b1", "a1", "hdfs://nn/plan.json", plan_text=PLAN)


@pytest.mark.parametrize(
    ("line", "broker"),
    [
        (
            "WARN NetworkClient: [AdminClient clientId=x] Connection to node -1"
            " (kafka/10.0.0.7:9092) could not be established. Node may not be available.",
            "kafka/10.0.0.7:9092",
        ),
        ("WARN NetworkClient: Error connecting to node k2:9092 (id: 2 rack: null)", "k2:9092"),
        ("WARN ClientUtils: Couldn't resolve server k3:9092 from bootstrap.servers", "k3:9092"),
        ("WARN NetworkClient: Node 1 disconnected.", None),
    ],
)
def test_a_broker_is_named_as_the_client_names_it(line: str, broker: str | None) -> None:
    assert unreached_in(line) == broker


@pytest.mark.parametrize(
    "reason",
    [
        "TimeoutException: Timed out waiting for a node assignment. Call: listNodes",
        "Timeout of 30000ms expired before the position for partition t-0 could be determined",
        "ConfigException: No resolvable bootstrap urls given in bootstrap.servers",
    ],
)
def test_no_broker_is_a_reason_of_its_own(reason: str) -> None:
    found = failure(ORDER, "app-1", reason, {"k2:9092": None, "k3:9092": None})

    assert isinstance(found, BrokersUnreached)
    assert f"app-1 failed: it can't reach Kafka at k2:9092, k3:9092: {reason}" in str(found)
    assert "one:9092,two:9092, or at a broker that is named" in str(failure(ORDER, "a", reason))


def test_another_failure_is_not_laid_on_a_broker_that_was_away_for_a_moment() -> None:
    found = failure(ORDER, "app-1", "ArithmeticException: long overflow", ["k2:9092"])

    assert not isinstance(found, BrokersUnreached)
