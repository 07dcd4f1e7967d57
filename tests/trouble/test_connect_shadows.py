"""Other code puts things of its own into our session, under names that stand for something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, IntegerType, LongType, StringType

from sandbox import Sandbox
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.scrub import ExpectedSlice, ScrubFile, ScrubPlan
from tallystick.domain.verdicts import Verdict
from tallystick.errors import SparkUnavailable
from tallystick.ports.spark_runner import ScrubOrder
from tallystick.spark.known_row import require_own_functions
from tallystick.spark.session_settings import SessionChanged
from tallystick.workflows.reconciling.reconciliation import reconcile
from tests.support.connect_servers import Struck, server_at
from tests.support.kafka_producers import messages, produce
from tests.support.kafka_topics import create_topic
from tests.support.landed_rows import a_row, write
from tests.support.scripted_scrub import unwritten
from tests.support.whole_way import Way, environ_of

FUNCTIONS: dict[str, DataType] = {
    "xxhash64": LongType(),
    "crc32": LongType(),
    "shiftrightunsigned": LongType(),
    "shiftleft": LongType(),
    "ifnull": LongType(),
    "coalesce": IntegerType(),
    "array_join": StringType(),
    "chr": StringType(),
    "size": IntegerType(),
    "if": IntegerType(),
    "count": LongType(),
    "sum": LongType(),
    "min": LongType(),
    "max": LongType(),
    "bit_or": LongType(),
    "collect_list": LongType(),
    "spark_partition_id": IntegerType(),
    "monotonically_increasing_id": LongType(),
}
"""What a full read calls, with the type that it gives."""
NAMES = ("kafka", "parquet", "text", "topic", "offset", "value", "range", "file")


class Meddler(Struck):
    """Somebody opens our session by its id, and does something there before we work."""

    def __init__(self, url: str, meddle: Callable[[SparkSession], object]) -> None:
        super().__init__(server_at(url), lambda: None)
        self._meddle = meddle

    @contextmanager
    def session(self, session_id: str, *args: Any, **kwargs: Any) -> Iterator[SparkSession]:
        with self.server.session(session_id, *args, **kwargs) as spark:
            other = self.server._opened(session_id, 1)
            self._meddle(other.spark)
            other.close()
            yield spark


@pytest.fixture
def way(kafka: str, hdfs: Any, ledger_dsn: str, spark_connect: str, sandbox: Sandbox) -> Way:
    """A feed with 500 records."""
    sandbox.up(only=["spark-connect"])
    environ = environ_of(kafka, hdfs, ledger_dsn, spark_connect)
    found = Way(create_topic(kafka), environ)
    produce(kafka, found.topic, messages(500))
    return found


def views(spark: SparkSession) -> None:
    for name in NAMES:
        spark.range(3).createOrReplaceTempView(name)


def functions(spark: SparkSession) -> None:
    for name in ("xxhash64", "timestamp", "count"):
        spark.udf.register(name, lambda *_: 7, LongType())


def test_views_under_the_names_of_ours_change_nothing(way: Way, spark_connect: str) -> None:
    runner = Meddler(spark_connect, views).runner()

    way.landed(runner)
    with way.services(runner) as services:
        report = reconcile(services, Level.L3)

    assert way.rows() == way.produced({0: (0, 500)})
    assert (report.verdict, report.findings) == (Verdict.PROVEN_OK, ())


def test_functions_under_the_names_of_sparks_change_no_row_and_blame_no_file(
    way: Way, spark_connect: str
) -> None:
    runner = Meddler(spark_connect, functions).runner()

    way.landed(runner)
    with way.services(runner) as services:
        report = reconcile(services, Level.L3)

    assert way.rows() == way.produced({0: (0, 500)})
    assert report.verdict is Verdict.UNKNOWN
    assert {each.code for each in report.findings} == {FindingCode.COULD_NOT_TELL}
    assert any("functions" in str(each) for each in report.findings)
    assert way.reconciled(Level.L3).verdict is Verdict.PROVEN_OK


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_that_a_full_read_calls_is_known_from_another(
    spark_connect: str, sandbox: Sandbox, name: str
) -> None:
    sandbox.up(only=["spark-connect"])
    session = server_at(spark_connect)._opened(str(uuid4()), 1)
    try:
        require_own_functions(session.spark, listed=True)
        session.spark.udf.register(name, lambda *_: None, FUNCTIONS[name])

        with pytest.raises(SessionChanged, match="functions of the session"):
            require_own_functions(session.spark, listed=True)
    finally:
        session.close()


def test_a_file_is_not_blamed_by_a_function_that_lists_other_offsets(
    spark_connect: str, sandbox: Sandbox, tmp_path: Path
) -> None:
    """Lists are asked for where sums don't show that all offsets are there."""
    sandbox.up(only=["spark-connect"])
    path = write(tmp_path / "short.parquet", [a_row(each) for each in range(9)])
    wanted = ExpectedSlice(0, 0, 9, OffsetRuns())
    file = ScrubFile(path.name, path.as_uri(), path.stat().st_size, (wanted,))

    def order() -> ScrubOrder:
        plan = ScrubPlan(str(uuid4()), (file,), (tmp_path / "result").as_uri(), None)
        return ScrubOrder("orders", plan.scrub_id, path.as_uri(), plan=plan, written=unwritten)

    def lists(spark: SparkSession) -> None:
        spark.udf.register("collect_list", lambda *_: [1], ArrayType(LongType()))

    [found] = Meddler(spark_connect, lambda _: None).runner().scrub(order()).files
    assert [each.missing.count for each in found.slices] == [1]
    with pytest.raises(SparkUnavailable, match="functions of the session"):
        Meddler(spark_connect, lists).runner().scrub(order())


def test_a_setting_that_the_work_sets_away_is_no_other_function(
    spark_connect: str, sandbox: Sandbox
) -> None:
    """`offset` and `partition` are reserved words then."""
    sandbox.up(only=["spark-connect"])
    session = server_at(spark_connect)._opened(str(uuid4()), 1)
    try:
        session.spark.conf.set("spark.sql.ansi.enabled", "true")
        session.spark.conf.set("spark.sql.ansi.enforceReservedKeywords", "true")
        require_own_functions(session.spark, listed=True)
    finally:
        session.close()
