"""What the landing function tells Spark, without Spark."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tallystick.domain.batches.landing import Scan
from tallystick.domain.batches.states import Isolation
from tallystick.domain.offsets.ranges import OffsetRange, TopicPartition
from tallystick.settings.spark_conf import refusal_of
from tallystick.spark.landing import SESSION_SETTINGS, land, source_options, writer_options
from tests.support.builders import ATTEMPT, BATCH, a_landing

TOPIC = 'odd "topic"'
RANGES = (OffsetRange(TopicPartition(TOPIC, 3), 0, 10), OffsetRange(TopicPartition(TOPIC, 0), 7, 8))
PACKED = Scan(RANGES, None, 1)
SPLIT = Scan(RANGES, 1000, None)
PLAN = replace(a_landing(*RANGES), topic=TOPIC)


def test_offsets_are_exact_and_name_the_assigned_partitions_and_no_others() -> None:
    options = source_options(PLAN, PACKED)

    assert json.loads(options["assign"]) == {TOPIC: [0, 3]}
    assert json.loads(options["startingOffsets"]) == {TOPIC: {"0": 7, "3": 0}}
    assert json.loads(options["endingOffsets"]) == {TOPIC: {"0": 8, "3": 10}}
    assert options["failOnDataLoss"] == options["includeHeaders"] == "true"
    assert "maxRecordsPerPartition" not in options


@pytest.mark.parametrize("isolation", list(Isolation))
def test_the_plan_says_the_isolation(isolation: Isolation) -> None:
    options = source_options(replace(PLAN, isolation=isolation), PACKED)

    assert options["kafka.isolation.level"] == isolation.value


def test_a_split_scan_says_how_many_records_fill_a_file() -> None:
    assert source_options(PLAN, SPLIT)["maxRecordsPerPartition"] == "1000"


@pytest.mark.parametrize(
    ("name", "value"),
    [("kafka.max.poll.records", "5"), ("KAFKACONSUMER.pollTimeoutMs", "1"), ("groupIdPrefix", "x")],
)
def test_the_plans_own_options_go_over_the_defaults(name: str, value: str) -> None:
    options = source_options(replace(PLAN, kafka_options={name: value}), PACKED)

    assert options[name] == value
    assert [each for each in options if each.lower() == name.lower()] == [name]


@pytest.mark.parametrize(
    ("given", "most", "expected"),
    [(None, None, "20000"), (None, 200, "200"), ("50", 200, "50"), ("50000", None, "50000")],
)
def test_a_scan_may_only_shorten_the_polls(
    given: str | None, most: int | None, expected: str
) -> None:
    own = {} if given is None else {"Kafka.Max.Poll.Records": given}
    options = source_options(
        replace(PLAN, kafka_options=own), replace(PACKED, max_poll_records=most)
    )

    assert {name.lower(): value for name, value in options.items()}[
        "kafka.max.poll.records"
    ] == expected


@pytest.mark.parametrize(
    "name", ["failOnDataLoss", "FAILONDATALOSS", "startingoffsets", "kafka.Isolation.Level"]
)
def test_the_plans_own_options_never_go_over_its_ranges(name: str) -> None:
    options = source_options(replace(PLAN, kafka_options={name: "mine"}), PACKED)

    assert "mine" not in options.values()
    assert [each.lower() for each in options].count(name.lower()) == 1


def test_no_option_lets_the_client_make_a_topic() -> None:
    asked = {"Kafka.Allow.Auto.Create.Topics": "true"}
    options = source_options(replace(PLAN, kafka_options=asked), PACKED)

    assert options["kafka.allow.auto.create.topics"] == "false"
    assert "true" not in {options[each] for each in options if each.startswith("kafka.allow")}


def test_a_partition_that_occurs_twice_is_refused() -> None:
    twice = Scan((RANGES[0], OffsetRange(RANGES[0].partition, 20, 30)), None, 1)

    with pytest.raises(ValueError, match="has a partition twice"):
        source_options(PLAN, twice)


def test_a_scan_without_ranges_is_refused() -> None:
    with pytest.raises(ValueError, match="a scan is empty"):
        source_options(PLAN, Scan((), None, 1))


def test_a_plan_without_scans_is_refused_before_spark_is_asked() -> None:
    with pytest.raises(ValueError, match="has no scans"):
        land(None, replace(PLAN, scans=()))  # type: ignore[arg-type]


@pytest.mark.parametrize("part", ["page", "block"])
def test_the_writer_asks_for_its_size_after_the_first_record_and_soon_again(part: str) -> None:
    options = writer_options(PLAN)

    assert options[f"parquet.{part}.size.row.check.min"] == "1"
    assert int(options[f"parquet.{part}.size.row.check.max"]) <= 100


def test_file_names_say_batch_and_attempt() -> None:
    assert writer_options(PLAN)["mapreduce.output.basename"] == f"{BATCH}-{ATTEMPT}"


@pytest.mark.parametrize(
    ("compression", "level", "expected"),
    [
        ("zstd", 3, {"parquet.compression.codec.zstd.level": "3"}),
        ("gzip", 9, {"zlib.compress.level": "9"}),
        ("zstd", None, {}),
        ("snappy", None, {}),
        ("snappy", 3, {}),
    ],
)
def test_the_level_is_said_under_the_codecs_own_key(
    compression: str, level: int | None, expected: dict[str, str]
) -> None:
    options = writer_options(replace(PLAN, compression=compression, compression_level=level))

    assert options["compression"] == compression
    assert {name: options[name] for name in options if "level" in name} == expected


@pytest.mark.parametrize(("replication", "expected"), [(None, None), (2, "2")])
def test_replication_is_said_only_when_the_target_says_it(
    replication: int | None, expected: str | None
) -> None:
    assert writer_options(replace(PLAN, replication=replication)).get("dfs.replication") == expected


@pytest.mark.parametrize("name", SESSION_SETTINGS)
def test_a_feed_may_not_set_what_the_landing_sets_anyway(name: str) -> None:
    assert refusal_of(name, "any")
