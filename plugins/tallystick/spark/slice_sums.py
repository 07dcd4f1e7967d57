"""What is summed up over the rows of each slice, and which offsets they have.

1. A large file of one partition is summed up by itself. Sums by file and partition lie in a table
   that Spark looks into at each row, which costs as much as the hashing does.
2. Where such a file should hold one run of offsets it is only asked if it does: all rows then are
   as far from their offsets as the first one, counted as they are read, by one task. A file that
   does not is read again, in the other way.
3. Every page's checksum is verified; no setting of the cluster lets a damaged file pass as empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tallystick.domain.fingerprint import Fingerprint
from tallystick.domain.row_hash import hash_bytes
from tallystick.domain.runs import OffsetRuns
from tallystick.domain.scrub import ScrubFile, runs_of_words
from tallystick.spark.row_hash_columns import HALVES, PLACE
from tallystick.spark.session_settings import session_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The timestamp is read as the number that lies in the file: as a timestamp, Spark would shift times
# before 1900, by a time zone.
SCHEMA: Final = (
    "partition INT, offset BIGINT, timestamp BIGINT, timestamp_type INT, key BINARY, value BINARY,"
    " headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
COORDINATES: Final = "partition INT, offset BIGINT"
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
# Below, planning a scan of its own costs more than a file's sums by partition do.
_LARGE_ROWS: Final = 500_000
_MOST_SCANS: Final = 32

_FILE: Final = "xxhash64(_metadata.file_name) AS file"
_FIELDS: Final = ("partition", "offset", "key", "value", "headers", PLACE)
# Rows of a file that are as far from their offsets as one another have different offsets.
_SHIFT: Final = "offset - _metadata.row_index AS shift"
_SHIFTS: Final = ("min(shift) AS least_shift", "max(shift) AS largest_shift")
_PARTITIONS: Final = ("min(partition) AS partition", "max(partition) AS last_partition")
# Halves of 32 bits: sums of whole 64-bit numbers would overflow.
_HASH_SUMS: Final = (
    "sum(shiftrightunsigned(high_half, 32)) AS first",
    "sum(high_half & 4294967295L) AS second",
    "sum(shiftrightunsigned(low_half, 32)) AS third",
    "sum(low_half & 4294967295L) AS fourth",
)
_AGGREGATES: Final = (
    "count(*) AS record_count",
    "count(if(offset IS NULL, NULL, partition)) AS placed_count",
    "min(offset) AS first_offset",
    "max(offset) AS last_offset",
    "sum(shiftrightunsigned(offset, 32)) AS high_sum",
    "sum(offset & 4294967295L) AS low_sum",
    *_HASH_SUMS,
)
# What no row has, in place of null, which would count for nothing.
_NOWHERE: Final = -1
_NO_SHIFT: Final = -(1 << 62)
# One task counts the rows of a file from 0 up. It does so for less than Spark's reader says them.
_RUN_FIELDS: Final = (*_FIELDS, "offset - monotonically_increasing_id() AS shift")
_RUN_CONTENT: Final = (
    f"coalesce(partition, {_NOWHERE}) AS partition",
    f"coalesce(shift, {_NO_SHIFT}L) AS shift",
    *HALVES,
)
_RUN_AGGREGATES: Final = ("count(*) AS record_count", *_SHIFTS, *_HASH_SUMS)
_BIT: Final = ("offset >> 6 AS place", "1L << cast(offset & 63 AS INT) AS bit")
_WORD: Final = "bit_or(bit) AS word"


class SliceSums(NamedTuple):
    """What was summed up over one slice."""

    fingerprint: Fingerprint
    distinct_count: int
    """How many different offsets there are; 0 where that is not known yet."""


FileSums = dict[str, dict[int, SliceSums]]
"""By file name and partition; a file without rows is there without a partition."""


def sums_of(spark: SparkSession, files: Sequence[ScrubFile]) -> FileSums:
    """What lies in every file; raises ValueError for rows without partition or offset."""
    large = [each for each in files if len(each.slices) == 1 and each.record_count >= _LARGE_ROWS]
    found = FileSums()
    for some in _some([each for each in large if not each.slices[0].holes]):
        found |= _taken_as_runs(spark, some)
    for some in _some([each for each in large if each.slices[0].holes]):
        found |= _taken_by_file(spark, some)
    left = [each for each in files if each.name not in found]
    return found | _taken_by_slice(spark, left) if left else found


def _some(files: Sequence[ScrubFile]) -> Iterator[Sequence[ScrubFile]]:
    """The files in parts, as many as one query takes."""
    for first in range(0, len(files), _MOST_SCANS):
        yield files[first : first + _MOST_SCANS]


def _taken_as_runs(spark: SparkSession, files: Sequence[ScrubFile]) -> FileSums:
    """Without the files that hold something else than the run of offsets that they should."""
    expected = {each.name: each.slices[0] for each in files}
    found = FileSums()
    with session_settings(spark, _one_task_per_file(files)):
        rows = _summed_by_file(spark, files, (_RUN_FIELDS, _RUN_CONTENT), _RUN_AGGREGATES)
    for row in rows:
        wanted, count = expected[row["name"]], row["record_count"]
        first, last = wanted.first_offset, wanted.first_offset + count - 1
        is_one_run = row["least_shift"] == row["largest_shift"] == first
        if count == 0:
            found[row["name"]] = {}
        elif is_one_run and row["partition"] == row["last_partition"] == wanted.partition:
            sums = (row["first"], row["second"], row["third"], row["fourth"])
            fingerprint = Fingerprint(count, count * (first + last) // 2, sums, first, last)
            found[row["name"]] = {wanted.partition: SliceSums(fingerprint, count)}
    return found


def _one_task_per_file(files: Sequence[ScrubFile]) -> Mapping[str, str]:
    """So that rows are counted from 0 up; in parts they are not, and the file is read again."""
    return {
        "spark.sql.files.minPartitionNum": "1",
        "spark.sql.files.maxPartitionBytes": str(max(each.length_bytes for each in files) + 1),
    }


def _taken_by_file(spark: SparkSession, files: Sequence[ScrubFile]) -> FileSums:
    """Without the files that hold rows of several partitions."""
    found = FileSums()
    content = (_FIELDS, ("partition", "offset", *HALVES))
    for row in _summed_by_file(spark, files, content, _AGGREGATES):
        if row["record_count"] == 0:
            found[row["name"]] = {}
        elif row["partition"] == row["last_partition"]:
            found[row["name"]] = {row["partition"]: SliceSums(_fingerprint(row["name"], row), 0)}
    return found


def _summed_by_file(
    spark: SparkSession,
    files: Sequence[ScrubFile],
    content: Sequence[Sequence[str]],
    aggregates: Sequence[str],
) -> list[Any]:
    """One row for each file, with its name and the range of its partitions."""
    from pyspark.sql.functions import expr, lit  # the module itself is imported without Spark, too

    # Parsed once, not once for each file.
    selects = [[expr(each) for each in columns] for columns in content]
    sums = [expr(each) for each in (*aggregates, *_PARTITIONS)]

    def summed(file: ScrubFile) -> DataFrame:
        rows = _rows(spark, SCHEMA, [file])
        for columns in selects:
            rows = rows.select(*columns)
        return rows.agg(*sums).withColumn("name", lit(file.name))

    frames = (summed(each) for each in files)
    return reduce(lambda one, other: one.union(other), frames).collect()


def _taken_by_slice(spark: SparkSession, files: Sequence[ScrubFile]) -> FileSums:
    rows = _rows(spark, SCHEMA, files).selectExpr(_FILE, _SHIFT, *_FIELDS)
    rows = rows.selectExpr("file", "shift", "partition", "offset", *HALVES)
    names = _names(files)
    found = FileSums()
    for row in _aggregated(rows, ("file", "partition"), (*_AGGREGATES, *_SHIFTS)).collect():
        name = names[row["file"]]
        is_one_run = row["least_shift"] == row["largest_shift"]
        sums = SliceSums(_fingerprint(name, row), row["record_count"] if is_one_run else 0)
        found.setdefault(name, {})[row["partition"]] = sums
    return found


def _fingerprint(name: str, row: Any) -> Fingerprint:
    if row["placed_count"] != row["record_count"]:
        raise ValueError(f"{name} holds rows without partition or offset")
    return Fingerprint(
        record_count=row["record_count"],
        offset_sum=(row["high_sum"] << 32) + row["low_sum"],
        hash_sums=(row["first"], row["second"], row["third"], row["fourth"]),
        first_offset=row["first_offset"],
        last_offset=row["last_offset"],
    )


def _rows(spark: SparkSession, schema: str, files: Sequence[ScrubFile]) -> DataFrame:
    reader = spark.read.schema(schema).options(**READER_OPTIONS)
    return reader.parquet(*(each.uri for each in files))


def _words(spark: SparkSession, files: Sequence[ScrubFile]) -> DataFrame:
    """The offsets as bit maps of 64: one row for each word in which an offset is."""
    rows = _rows(spark, COORDINATES, files).selectExpr(_FILE, "partition", *_BIT)
    return _aggregated(rows, ("file", "partition", "place"), (_WORD,))


def offsets_of(
    spark: SparkSession, file: ScrubFile, partition: int
) -> tuple[OffsetRuns, OffsetRuns]:
    """Offsets of a slice that are there, and those that are there more than once."""
    present = _words(spark, [file]).where(f"partition = {partition}")
    rows = _rows(spark, COORDINATES, [file]).where(f"partition = {partition}")
    twice = rows.groupBy("offset").count().where("count > 1").selectExpr(*_BIT)
    return _runs(present), _runs(_aggregated(twice, ("place",), (_WORD,)))


def _runs(words: DataFrame) -> OffsetRuns:
    found = words.select("place", "word").toLocalIterator()
    return runs_of_words((row["place"], row["word"]) for row in found)


def _aggregated(frame: DataFrame, keys: Sequence[str], sums: Sequence[str]) -> DataFrame:
    from pyspark.sql.functions import expr  # the module itself is imported without Spark, too

    return frame.groupBy(*keys).agg(*(expr(each) for each in sums))


def _names(files: Sequence[ScrubFile]) -> dict[int, str]:
    """File names by their hashes, as Spark gives them: a number is grouped faster than a name."""
    names = {hash_bytes(each.name.encode()): each.name for each in files}
    if len(names) < len(files):
        raise ValueError("two files have the same name, or names of the same hash")
    return {number - (1 << 64) if number >> 63 else number: each for number, each in names.items()}
