"""Lands a plan: reads exactly its offset ranges from Kafka, writes them as Parquet files.

It uses the DataFrame API only, so the same function runs under spark-submit and on a Spark Connect
server. It decides nothing: which slices, how many files and where to is in the plan. It proves
nothing either: Spark's batch source does not check that it returned every offset, so whoever calls
it verifies the files afterwards.

1. Every range of the plan is read by exactly one scan, and nothing else is.
2. Without a shuffle, a file holds whole slices: pieces of a big range, or several small ranges one
   after another.
3. No session setting of the cluster changes what is in the files; settings changed here are put
   back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tallystick.domain.batches.landing import LandingPlan, Scan
from tallystick.domain.batches.polling import MAX_POLL_RECORDS, POLL_OPTION
from tallystick.spark.session_settings import DEFAULTS, session_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS: Final = (
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType AS timestamp_type",
    "key",
    "value",
    "headers",
)

# The client fetches ahead; at the end of a log that fetch waits at the broker, for half a second by
# default, and the next request waits behind it: once for every partition.
CONSUMER_DEFAULTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        POLL_OPTION: str(MAX_POLL_RECORDS),
        "kafka.max.partition.fetch.bytes": str(16 << 20),
        "kafka.fetch.max.bytes": str(64 << 20),
        "kafka.fetch.max.wait.ms": "10",
        # A broker that starts anew is waited for, by each of a task's tries. One that can't be
        # reached, or a topic that is gone, holds a core for both of these at most.
        "kafkaConsumer.pollTimeoutMs": "30000",
        "kafka.default.api.timeout.ms": "30000",
    }
)

SESSION_SETTINGS: Final[Mapping[str, str | None]] = MappingProxyType(
    {
        **DEFAULTS,
        # The default, INT96, has no statistics in footers.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.writeLegacyFormat": "false",
        # The Kafka source shifts times before 1582 (before 1900 in most time zones) as if they came
        # from the Julian calendar. LEGACY shifts them back, by the session's zone; the source goes
        # by the JVM's zone, which is the session's default. Together they write the broker's
        # milliseconds as they were.
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
        "spark.sql.session.timeZone": None,
    }
)

_LEVEL_KEY: Final = {
    "zstd": "parquet.compression.codec.zstd.level",
    "gzip": "zlib.compress.level",
}


def land(spark: SparkSession, plan: LandingPlan, *, mode: str = "error") -> None:
    """Return when all files of the plan are written.

    Raises what Spark raises, and ValueError for a plan that makes no sense. The output directory
    must not exist, unless the mode is "overwrite". After an error it may hold anything: nobody may
    use it.
    """
    if not plan.scans:
        raise ValueError(f"batch {plan.batch_id}: the landing plan has no scans")
    with session_settings(spark, SESSION_SETTINGS):
        frames = [_read(spark, plan, scan) for scan in plan.scans]
        everything = reduce(lambda left, right: left.unionAll(right), frames)
        writer = everything.write.mode(mode).options(**writer_options(plan))
        writer.parquet(plan.output)


def source_options(plan: LandingPlan, scan: Scan) -> dict[str, str]:
    """Options of Spark's Kafka source for exactly these ranges; the plan's own never override them.

    Raises ValueError when there is none, or a partition occurs twice: its second range would
    silently replace the first.
    """
    first = {each.partition.partition: each.from_offset for each in scan.ranges}
    until = {each.partition.partition: each.until_offset for each in scan.ranges}
    if not scan.ranges or len(first) < len(scan.ranges):
        raise ValueError(f"batch {plan.batch_id}: a scan is empty, or has a partition twice")
    fixed = {
        "assign": json.dumps({plan.topic: sorted(first)}),
        "startingOffsets": json.dumps({plan.topic: first}),
        "endingOffsets": json.dumps({plan.topic: until}),
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        # A topic that was deleted must stay so: a broker may make what a client asks for.
        "kafka.allow.auto.create.topics": "false",
        "kafka.isolation.level": plan.isolation.value,
    }
    if scan.max_records_per_file is not None:
        fixed["maxRecordsPerPartition"] = str(scan.max_records_per_file)
    layers = (CONSUMER_DEFAULTS, plan.kafka_options, fixed)
    # Spark takes option names in any case; of two spellings, Connect would let chance decide.
    options = {name.lower(): (name, value) for layer in layers for name, value in layer.items()}
    if scan.max_poll_records is not None:
        name, most = options[POLL_OPTION]
        options[POLL_OPTION] = name, str(min(int(most), scan.max_poll_records))
    return dict(options.values())


def writer_options(plan: LandingPlan) -> dict[str, str]:
    """Options of the Parquet writer, Hadoop's and Parquet's own keys among them."""
    options = {
        "compression": plan.compression,
        "maxRecordsPerFile": "0",
        "parquet.page.write-checksum.enabled": "true",
        # Who wants a few rows reads their row groups whole.
        "parquet.block.size": str(16 << 20),
        # An offset comes once: a dictionary of them would be built, and thrown away. With one of
        # equal values nobody knows how much a row takes unpacked, so no reader could bound it.
        "parquet.enable.dictionary#offset": "false",
        "parquet.enable.dictionary#value": "false",
        # The smallest and the largest value of each page would be copied: nobody asks for them.
        "parquet.column.statistics.enabled#value": "false",
        # Parquet asks for its size after 100 records at first, and after 10,000 at most: of large
        # records that is more than a heap. Block's alone are not enough.
        **{f"parquet.{part}.size.row.check.min": "1" for part in ("page", "block")},
        **{f"parquet.{part}.size.row.check.max": "100" for part in ("page", "block")},
        "mapreduce.output.basename": plan.file_prefix,
        # Version 2 shows files of a job that fails later.
        "mapreduce.fileoutputcommitter.algorithm.version": "1",
        # _SUCCESS would be said before anything is verified; `_tally.json` is what vouches for a
        # directory.
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        # The two client settings below are read when a client is made, and the cached one exists
        # already.
        "fs.hdfs.impl.disable.cache": "true",
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
    }
    if plan.replication is not None:
        options["dfs.replication"] = str(plan.replication)
    if plan.compression_level is not None and plan.compression in _LEVEL_KEY:
        options[_LEVEL_KEY[plan.compression]] = str(plan.compression_level)
    return options


def _read(spark: SparkSession, plan: LandingPlan, scan: Scan) -> DataFrame:
    source = spark.read.format("kafka").options(**source_options(plan, scan))
    frame = source.load().selectExpr(*COLUMNS)
    # Without a shuffle this puts whole slices behind one another, and splits none.
    return frame if scan.file_count is None else frame.coalesce(scan.file_count)
