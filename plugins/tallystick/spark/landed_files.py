"""Landed files as rows of Spark: by name, as they lie there, and none that hides a damaged one.

Every page's checksum is verified; no setting of the cluster lets a damaged file pass as empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tallystick.domain.rows.row_hash import hash_bytes, wrapped
from tallystick.domain.rows.scrub import ScrubFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

READER_OPTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "parquet.page.verify-checksum.enabled": "true",
        # Either would show a damaged or missing file as one without rows.
        "ignoreCorruptFiles": "false",
        "ignoreMissingFiles": "false",
        "mergeSchema": "false",
        # Nothing is taken from the directories' names.
        "recursiveFileLookup": "true",
    }
)
FILE: Final = "xxhash64(_metadata.file_name) AS file"
"""Column `file`: of which file a row is. A number is grouped faster than a name."""


def rows_of(spark: SparkSession, schema: str, files: Sequence[ScrubFile]) -> DataFrame:
    """The rows of all the files, with the columns of the schema; nulls where a file has no such."""
    reader = spark.read.schema(schema).options(**READER_OPTIONS)
    return reader.parquet(*(each.uri for each in files))


def names_by_hash(files: Sequence[ScrubFile]) -> dict[int, str]:
    """The files' names by the column `file`; ValueError where two can't be told apart by it."""
    names = {hash_bytes(each.name.encode()): each.name for each in files}
    if len(names) < len(files):
        raise ValueError("two files have the same name, or names of the same hash")
    return {wrapped(number): each for number, each in names.items()}
