"""Reads landed files as they are. Decides nothing: which files is the ledger's word.

It uses the DataFrame API only, so it works on a Spark Connect server too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LANDED_SCHEMA: Final = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestamp_type INT,"
    " key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)

# What a cluster's defaults may say must not make rows vanish.
_OPTIONS: Final = {
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
    # Nothing is taken from the directories' names.
    "recursiveFileLookup": "true",
    "mergeSchema": "false",
}


def landed_frame(spark: SparkSession, uris: Sequence[str]) -> DataFrame:
    """The rows of exactly these files; without a file no rows, with the same columns.

    A file that is not there any more raises Spark's own error, now or when the rows are read.
    """
    if not uris:
        return spark.createDataFrame([], LANDED_SCHEMA)
    return spark.read.schema(LANDED_SCHEMA).options(**_OPTIONS).parquet(*uris)
