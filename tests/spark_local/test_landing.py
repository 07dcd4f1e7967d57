"""The landing function on a warm session: real Kafka, real HDFS, files read by pyarrow alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from tallystick.domain.batches.landing import LandingPlan, Scan
from tallystick.domain.batches.states import Isolation
from tallystick.spark.landing import SESSION_SETTINGS, land
from tests.spark_local.planner import Planner, Ranges, packed, split
from tests.support.kafka_producers import AWKWARD, Message, TransactionalProducer, messages, produce
from tests.support.kafka_records import records_in
from tests.support.kafka_topics import ANY_TIME_FOR_EVER, LARGE, create_topic, purge
from tests.support.landed_files import landed_in, names_in, rows_in

ScanOf = Callable[[str, Ranges], Scan]


@pytest.fixture(params=["packed", "split"])
def scan_of(request: pytest.FixtureRequest) -> ScanOf:
    """Both kinds of scan: big slices in files of their own, small ones packed into one."""
    return packed if request.param == "packed" else partial(split, max_records=1_000)


def test_every_kind_of_record_lands_byte_for_byte(
    spark: SparkSession, planner: Planner, kafka: str, scan_of: ScanOf
) -> None:
    topic = create_topic(kafka, partitions=2, config=ANY_TIME_FOR_EVER | LARGE)
    repeated = [("a", b"1"), ("b", None), ("a", b""), ("ü", b"\xff\x00")]
    sent = [*AWKWARD, Message(b"v", b"k", repeated), Message(None, b"key alone", repeated)]
    produce(kafka, topic, sent, partition=0)
    produce(kafka, topic, [Message(os.urandom(1 << 20)), Message(b"after it")], partition=1)
    plan = planner.plan(topic, [scan_of(topic, {0: (0, len(sent)), 1: (0, 2)})])

    land(spark, plan)

    landed = rows_in(planner.webhdfs_url, planner.directory(plan))
    assert landed == records_in(kafka, topic, {0: (0, len(sent)), 1: (0, 2)})
    assert [row.value for row in landed[: len(sent)]] == [each.value for each in sent]


def test_files_have_the_documented_schema_names_and_settings(
    spark: SparkSession, planner: Planner, kafka: str
) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, messages(50))
    plan = planner.plan(topic, [packed(topic, {0: (0, 50)})], replication=2)

    land(spark, plan)

    directory = planner.directory(plan)
    [landed] = landed_in(planner.webhdfs_url, directory)
    assert landed.file.schema_arrow.remove_metadata() == pa.schema(
        [
            ("topic", pa.string()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.timestamp("us", tz="UTC")),
            ("timestamp_type", pa.int32()),
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("headers", pa.list_(pa.field("element", HEADER))),
        ]
    )
    column = landed.file.metadata.row_group(0).column(3)
    assert (column.physical_type, column.compression) == ("INT64", "ZSTD")
    assert column.statistics.has_min_max
    assert set(landed.file.read(columns=["topic"])["topic"].to_pylist()) == {topic}
    assert landed.name.startswith(f"{plan.batch_id}-{plan.attempt_id}-00000-")
    assert landed.name.endswith(".zstd.parquet")
    assert landed.status["replication"] == 2
    assert names_in(planner.webhdfs_url, directory) == [landed.name]  # no _SUCCESS, no _temporary


HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])


def test_only_the_range_lands_and_its_bounds_are_half_open(
    spark: SparkSession, planner: Planner, kafka: str, scan_of: ScanOf
) -> None:
    topic = create_topic(kafka, partitions=3)
    for partition in range(3):
        produce(kafka, topic, messages(30), partition=partition)
    plan = planner.plan(topic, [scan_of(topic, {0: (5, 9), 2: (29, 30)})])

    land(spark, plan)

    landed = rows_in(planner.webhdfs_url, planner.directory(plan))
    assert [(row.partition, row.offset) for row in landed] == [
        (0, 5), (0, 6), (0, 7), (0, 8), (2, 29),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("isolation", "seen"),
    [(Isolation.READ_COMMITTED, 30), (Isolation.READ_UNCOMMITTED, 40)],
)
def test_isolation_decides_whether_aborted_records_land(
    spark: SparkSession,
    planner: Planner,
    kafka: str,
    scan_of: ScanOf,
    isolation: Isolation,
    seen: int,
) -> None:
    topic = create_topic(kafka)
    ten = messages(10)
    TransactionalProducer(kafka, topic).commit(ten).abort(ten).commit(ten).commit(ten)
    until = 44  # the last offset is a marker: no record will ever have it
    plan = planner.plan(topic, [scan_of(topic, {0: (0, until)})], isolation=isolation)

    land(spark, plan)

    landed = rows_in(planner.webhdfs_url, planner.directory(plan))
    assert landed == records_in(kafka, topic, {0: (0, until)}, isolation.value)
    assert len(landed) == seen


def test_two_hundred_tiny_partitions_become_three_files_of_whole_slices(
    spark: SparkSession, planner: Planner, kafka: str
) -> None:
    topic = create_topic(kafka, partitions=200)
    writer = Producer({"bootstrap.servers": kafka})
    for number in range(1000):
        writer.produce(topic, value=b"%d" % number, partition=number % 200)
    assert writer.flush(30) == 0
    ranges = {each: (each % 4, 5) for each in range(200)}
    plan = planner.plan(topic, [packed(topic, ranges, file_count=3)])

    land(spark, plan)

    files = landed_in(planner.webhdfs_url, planner.directory(plan))
    slices = [each.slices() for each in files]
    assert len(files) == 3
    assert sum(len(each) for each in slices) == 200  # a partition split in two would count twice
    assert {p: s for each in slices for p, s in each.items()} == {
        p: (begin, 4, 5 - begin) for p, (begin, _) in ranges.items()
    }
    for each in files:  # and each slice is one run of rows, in the order of the log
        places = [(row.partition, row.offset) for row in each.records()]
        starts = sum(1 for (a, _), (b, _) in pairwise(places) if a != b)
        assert starts == len(each.slices()) - 1
        assert all(x < y for (a, x), (b, y) in pairwise(places) if a == b)


def test_a_big_range_is_split_and_small_ones_beside_it_are_packed(
    spark: SparkSession, planner: Planner, kafka: str
) -> None:
    topic = create_topic(kafka, partitions=4)
    produce(kafka, topic, messages(10_000))
    for partition in (1, 2, 3):
        produce(kafka, topic, messages(10), partition=partition)
    scans = [
        split(topic, {0: (1, 10_000)}, max_records=3000),
        packed(topic, {1: (0, 10), 2: (0, 10), 3: (3, 10)}),
    ]
    plan = planner.plan(topic, scans)

    land(spark, plan)

    files = landed_in(planner.webhdfs_url, planner.directory(plan))
    slices = sorted((each.slices() for each in files), key=lambda found: sorted(found.items()))
    assert len(files) == 5
    assert slices[-1] == {1: (0, 9, 10), 2: (0, 9, 10), 3: (3, 9, 7)}
    pieces = [each[0] for each in slices[:-1]]
    assert [first for first, _, _ in pieces] == [1, *(last + 1 for _, last, _ in pieces[:-1])]
    assert pieces[-1][1] == 9999
    assert all(rows == last - first + 1 <= 3000 for first, last, rows in pieces)


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/Los_Angeles"])
def test_odd_timestamps_land_exactly_whatever_the_session_says(
    spark: SparkSession, planner: Planner, kafka: str, scan_of: ScanOf, zone: str
) -> None:
    topic = create_topic(kafka, config=ANY_TIME_FOR_EVER)
    odd = [
        -1, -2, -1000, 1, -2208988800001, -5000000000000,
        -12219292800001, -62135596800001,  # the last day of the Julian calendar, and year 0
        4102444800000, 253402300800000, 9223372036854775,
    ]  # fmt: skip
    produce(kafka, topic, [Message(b"", timestamp_ms=each) for each in odd])
    plan = planner.plan(topic, [scan_of(topic, {0: (0, len(odd))})])
    spark.conf.set("spark.sql.session.timeZone", zone)

    land(spark, plan)

    landed = rows_in(planner.webhdfs_url, planner.directory(plan))
    assert [row.timestamp_ms for row in landed] == odd
    assert landed == records_in(kafka, topic, {0: (0, len(odd))})


def test_log_append_time_lands_with_its_type(
    spark: SparkSession, planner: Planner, kafka: str, scan_of: ScanOf
) -> None:
    topic = create_topic(kafka, config={"message.timestamp.type": "LogAppendTime"})
    produce(kafka, topic, [Message(b"x", timestamp_ms=1)] * 3)
    plan = planner.plan(topic, [scan_of(topic, {0: (0, 3)})])

    land(spark, plan)

    landed = rows_in(planner.webhdfs_url, planner.directory(plan))
    assert landed == records_in(kafka, topic, {0: (0, 3)})
    assert {row.timestamp_type for row in landed} == {1}


def test_session_settings_are_put_back(spark: SparkSession, planner: Planner, kafka: str) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, messages(1))
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MILLIS")
    spark.conf.unset("spark.sql.parquet.writeLegacyFormat")
    before = {name: spark.conf.get(name, None) for name in SESSION_SETTINGS}

    land(spark, planner.plan(topic, [packed(topic, {0: (0, 1)})]))

    assert {name: spark.conf.get(name, None) for name in SESSION_SETTINGS} == before


def test_an_output_directory_that_exists_is_refused(
    spark: SparkSession, planner: Planner, kafka: str
) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, messages(1))
    plan = planner.plan(topic, [packed(topic, {0: (0, 1)})])
    land(spark, plan)

    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        land(spark, plan)

    assert len(rows_in(planner.webhdfs_url, planner.directory(plan))) == 1


@pytest.mark.parametrize("ranges", [{0: (0, 11)}, {1: (2, 10)}], ids=["beyond", "before"])
def test_a_range_that_the_broker_cannot_serve_whole_fails(
    spark: SparkSession, planner: Planner, kafka: str, scan_of: ScanOf, ranges: Ranges
) -> None:
    topic = create_topic(kafka, partitions=2)
    for partition in (0, 1):
        produce(kafka, topic, messages(10), partition=partition)
    purge(kafka, topic, {1: 5})
    plan = planner.plan(
        topic,
        [scan_of(topic, ranges)],
        kafka_options={"kafka.bootstrap.servers": kafka, "kafkaConsumer.pollTimeoutMs": "1000"},
    )

    with pytest.raises(Exception, match=r"data may have been lost|TimeoutException"):
        land(spark, plan)


@pytest.mark.parametrize(
    ("compression", "level", "codec"),
    [
        ("zstd", 6, "ZSTD"),
        ("snappy", None, "SNAPPY"),
        ("lz4_raw", None, "LZ4"),
        ("none", None, "UNCOMPRESSED"),
    ],
)
def test_each_codec_of_a_feed_file_is_written(
    spark: SparkSession, planner: Planner, kafka: str, compression: str, level: Any, codec: str
) -> None:
    topic = create_topic(kafka)
    produce(kafka, topic, messages(10))
    plan: LandingPlan = planner.plan(
        topic, [packed(topic, {0: (0, 10)})], compression=compression, compression_level=level
    )

    land(spark, plan)

    [landed] = landed_in(planner.webhdfs_url, planner.directory(plan))
    assert landed.file.metadata.row_group(0).column(6).compression == codec
    assert len(landed.records()) == 10
