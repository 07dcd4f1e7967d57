"""The first work of a Spark Connect server: what a landing does, without Kafka and HDFS.

Spark loads and compiles most of its code with its first query. Until then a landing takes seconds,
and afterwards a fraction of one.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from pyspark.sql.connect.session import SparkSession

LONGEST_SECONDS = 180
COLUMNS = (
    "'topic' AS topic",
    "cast(id % 2 AS int) AS partition",
    "id AS offset",
    "timestamp_millis(id) AS timestamp",
    "0 AS timestamp_type",
    "encode(cast(id AS string), 'UTF-8') AS key",
    "encode(cast(id AS string), 'UTF-8') AS value",
    "array(struct('name' AS key, encode('value', 'UTF-8') AS value)) AS headers",
)


def main(address: str, folder: Path) -> None:
    """Have the server write rows below the folder, and read a text there."""
    signal.alarm(LONGEST_SECONDS)  # a request waits for ever on a server that hangs
    spark = SparkSession.builder.remote(address).create()
    # Spark takes a path as it is: an escaped one, as of a folder with a space, is another one.
    rows = spark.range(0, 1_000, 1, 2).selectExpr(*COLUMNS)
    rows.write.mode("overwrite").option("compression", "zstd").parquet(f"file:{folder / 'rows'}")
    text = folder / "text"
    text.write_text("as a plan is read")
    spark.read.text(f"file:{text}", wholetext=True).head()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
