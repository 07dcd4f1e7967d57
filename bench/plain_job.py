"""What somebody without Tallystick would submit: read these offsets, write them, prove nothing.

`spark-submit plain_job.py SERVERS TOPIC UNTIL-OFFSETS-AS-JSON OUTPUT`. It reads and writes with the
options of a landing, so that only the proof makes a difference.
"""

from __future__ import annotations

import json
import sys


def main(servers: str, topic: str, until_offsets: str, output: str) -> None:
    """Read from 0 up to the given offset of each partition, write Parquet."""
    from pyspark.sql import SparkSession

    until = json.loads(until_offsets)
    spark = SparkSession.builder.getOrCreate()
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    frame = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("assign", json.dumps({topic: [int(each) for each in until]}))
        .option("startingOffsets", json.dumps({topic: dict.fromkeys(until, 0)}))
        .option("endingOffsets", json.dumps({topic: until}))
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.max.poll.records", "20000")
        .option("kafka.max.partition.fetch.bytes", str(16 << 20))
        .option("kafka.fetch.max.bytes", str(64 << 20))
        .option("kafka.fetch.max.wait.ms", "10")
        .load()
        .withColumnRenamed("timestampType", "timestamp_type")
    )
    (
        frame.select(
            "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"
        )
        .write.option("compression", "zstd")
        .option("parquet.compression.codec.zstd.level", "1")
        .option("fs.hdfs.impl.disable.cache", "true")
        .option("dfs.replication", "1")
        .option("dfs.client.block.write.locateFollowingBlock.initial.delay.ms", "10")
        .parquet(output)
    )
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
