"""The first work of Spark: what a landing does, without Kafka and HDFS.

Spark loads and compiles most of its code with its first query. Until then a landing takes seconds,
and afterwards a fraction of one. A Spark Connect server does it when it is new, and an application
of its own when an archive of the classes is made.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


# Nobody listens there: the client's classes are loaded, and it fails.
NO_FILE_SYSTEM = "hdfs://127.0.0.1:1/"


def main(folder: Path, address: str = "") -> None:
    """Write rows below the folder and read a text there: by this server, or by spark-submit."""
    signal.alarm(LONGEST_SECONDS)  # a request waits for ever on a server that hangs
    spark = _server(address) if address else _application()
    # Spark takes a path as it is: an escaped one, as of a folder with a space, is another one.
    rows = spark.range(0, 1_000, 1, 2).selectExpr(*COLUMNS)
    rows.write.mode("overwrite").option("compression", "zstd").parquet(f"file:{folder / 'rows'}")
    text = folder / "text"
    text.write_text("as a plan is read")
    spark.read.text(f"file:{text}", wholetext=True).head()
    spark.stop()


def _server(address: str) -> SparkSession:
    from pyspark.sql.connect.session import SparkSession

    return SparkSession.builder.remote(address).create()


def _application() -> SparkSession:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    with suppress(Exception):
        spark.read.text(NO_FILE_SYSTEM)
    return spark


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
