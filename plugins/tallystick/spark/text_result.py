"""One line of text into one file of a new directory: how an application gives its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.spark.session_settings import DEFAULTS, session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write_text(spark: SparkSession, text: str, output: str, replication: int | None) -> None:
    """Write the line; the directory must not exist."""
    options = {
        "mapreduce.fileoutputcommitter.algorithm.version": "1",
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "fs.hdfs.impl.disable.cache": "true",
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
    }
    if replication is not None:
        options["dfs.replication"] = str(replication)
    frame = spark.createDataFrame([(text,)], "value STRING").coalesce(1)
    with session_settings(spark, DEFAULTS):
        frame.write.mode("error").options(**options).text(output)
