"""What somebody without Tallystick would submit: read these offsets, write them, prove nothing.

`spark-submit other_ways.py WAY SERVERS TOPIC UNTIL-OFFSETS-AS-JSON OUTPUT`, where WAY is one of
WAYS. All read from offset 0 up to the given ones.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers")
# The options of a landing, so that only the proof makes a difference.
TUNED_READ = {
    "kafka.isolation.level": "read_committed",
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(16 << 20),
    "kafka.fetch.max.bytes": str(64 << 20),
    "kafka.fetch.max.wait.ms": "10",
}
TUNED_WRITE = {
    "compression": "zstd",
    "parquet.compression.codec.zstd.level": "1",
    "fs.hdfs.impl.disable.cache": "true",
    "dfs.replication": "1",
    "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
}


def _source(source: Any, servers: str, topic: str, until: Mapping[str, int]) -> Any:
    """Options of a reader, of batches or of a stream, that settle what is read."""
    options = {
        "kafka.bootstrap.servers": servers,
        "assign": json.dumps({topic: [int(each) for each in until]}),
        "startingOffsets": json.dumps({topic: dict.fromkeys(until, 0)}),
        "failOnDataLoss": "true",
        "includeHeaders": "true",
    }
    return source.format("kafka").options(**options)


def _batch(spark: SparkSession, servers: str, topic: str, until: Mapping[str, int]) -> Any:
    ending = json.dumps({topic: until})
    return _source(spark.read, servers, topic, until).option("endingOffsets", ending)


def _rows(source: Any) -> DataFrame:
    rows: DataFrame = source.load().select(*COLUMNS)
    return rows


def plain(spark: SparkSession, output: str, *source: Any) -> None:
    """Spark's defaults."""
    _rows(_batch(spark, *source)).write.parquet(output)


def tuned(spark: SparkSession, output: str, *source: Any) -> None:
    """The options of a landing."""
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    rows = _rows(_batch(spark, *source).options(**TUNED_READ))
    rows.write.options(**TUNED_WRITE).parquet(output)


def streaming(spark: SparkSession, output: str, *source: Any) -> None:
    """Structured Streaming with AvailableNow, its checkpoint beside the output."""
    rows = _rows(_source(spark.readStream, *source))
    stream = rows.writeStream.format("parquet").trigger(availableNow=True)
    stream = stream.option("checkpointLocation", f"{output}-checkpoint").option("path", output)
    stream.start().awaitTermination()


def iceberg(spark: SparkSession, output: str, *source: Any) -> None:
    """An append to an Iceberg table whose catalog is a directory; the session names it `lake`."""
    rows = _rows(_batch(spark, *source))
    rows.writeTo(f"lake.bench.`{output.rpartition('/')[2]}`").create()


WAYS: Mapping[str, Callable[..., None]] = {
    each.__name__: each for each in (plain, tuned, streaming, iceberg)
}


def main(way: str, servers: str, topic: str, until_offsets: str, output: str) -> None:
    """Go that way."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    WAYS[way](spark, output, servers, topic, json.loads(until_offsets))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
