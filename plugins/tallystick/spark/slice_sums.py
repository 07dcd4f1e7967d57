"""What is summed up over the rows of each slice.

1. A large file of one partition is summed up by itself. Sums by file and partition lie in a table
   that Spark looks into at each row, which costs as much as the hashing does.
2. Where such a file should hold one run of offsets it is only asked if it does: all rows then are
   as far from their offsets as the first one, counted as they are read, by one task. A file that
   does not is read again, in the other way. So it is with one that has holes, and whose rows are
   those on record: their hashes tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tallystick.domain.batches.standing_batch import SliceKey
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rows.scrub import ScrubFile
from tallystick.spark.functions import functions_of
from tallystick.spark.landed_files import FILE, names_by_hash, rows_of
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
# Below, planning a scan of its own costs more than a file's sums by partition do.
_LARGE_ROWS: Final = 500_000
_MOST_SCANS: Final = 32

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
AGGREGATES: Final = (
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
# One task counts the rows of a file from 0 up. It does so for less than Spark's reader says them. A
# file that has grown may be read by two: the second counts from elsewhere, and proves nothing.
_RUN_FIELDS: Final = (
    *_FIELDS,
    "if(spark_partition_id() = 0, offset - monotonically_increasing_id(), NULL) AS shift",
)
_RUN_CONTENT: Final = (
    f"coalesce(partition, {_NOWHERE}) AS partition",
    f"coalesce(shift, {_NO_SHIFT}L) AS shift",
    *HALVES,
)
_RUN_AGGREGATES: Final = ("count(*) AS record_count", *_SHIFTS, *_HASH_SUMS)
_KNOWN_CONTENT: Final = (f"coalesce(partition, {_NOWHERE}) AS partition", *HALVES)
_KNOWN_AGGREGATES: Final = ("count(*) AS record_count", *_HASH_SUMS)


class SliceSums(NamedTuple):
    """What was summed up over one slice."""

    fingerprint: Fingerprint
    distinct_count: int
    """How many different offsets there are; 0 where that is not known yet."""


FileSums = dict[str, dict[int, SliceSums]]
"""By file name and partition; a file without rows is there without a partition."""


def sums_of(
    spark: SparkSession, files: Sequence[ScrubFile], present: Mapping[SliceKey, OffsetRuns]
) -> FileSums:
    """What lies in every file; raises ValueError for rows without partition or offset.

    `present` are the offsets that have a row, of the slices where that is known already.
    """
    large = [each for each in files if len(each.slices) == 1 and each.record_count >= _LARGE_ROWS]
    found = FileSums()
    for some in _some([each for each in large if not each.slices[0].holes]):
        found |= _taken_as_runs(spark, some)
    for some in _some([each for each in large if _may_be_known(each, present)]):
        found |= _taken_as_known(spark, some)
    left = [each for each in files if each.name not in found]
    return found | _taken_by_slice(spark, left) if left else found


def _may_be_known(file: ScrubFile, present: Mapping[SliceKey, OffsetRuns]) -> bool:
    """True for a file with holes: its rows are on record, or its offsets are as they should be."""
    [wanted] = file.slices
    is_present = present.get(SliceKey(file.name, wanted.partition)) == wanted.offsets
    return bool(wanted.holes) and (wanted.fingerprint is not None or is_present)


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
            offset_sum = count * (first + last) // 2
            fingerprint = Fingerprint(count, offset_sum, _hash_sums(row), first, last)
            found[row["name"]] = {wanted.partition: SliceSums(fingerprint, count)}
    return found


def _taken_as_known(spark: SparkSession, files: Sequence[ScrubFile]) -> FileSums:
    """Without the files that hold other rows than those on record, or more rows than offsets."""
    expected = {each.name: each.slices[0] for each in files}
    found = FileSums()
    for row in _summed_by_file(spark, files, (_FIELDS, _KNOWN_CONTENT), _KNOWN_AGGREGATES):
        wanted = expected[row["name"]]
        sums = Fingerprint(
            row["record_count"],
            wanted.offsets.sum,
            _hash_sums(row),
            wanted.first_offset,
            wanted.last_offset,
        )
        is_known = wanted.fingerprint in (None, sums) and sums.record_count == wanted.record_count
        if is_known and row["partition"] == row["last_partition"] == wanted.partition:
            found[row["name"]] = {wanted.partition: SliceSums(sums, 0)}
    return found


def _one_task_per_file(files: Sequence[ScrubFile]) -> Mapping[str, str]:
    """So that rows are counted from 0 up; in parts they are not, and the file is read again."""
    return {
        "spark.sql.files.minPartitionNum": "1",
        "spark.sql.files.maxPartitionBytes": str(max(each.length_bytes for each in files) + 1),
    }


def _summed_by_file(
    spark: SparkSession,
    files: Sequence[ScrubFile],
    content: Sequence[Sequence[str]],
    aggregates: Sequence[str],
) -> list[Any]:
    """One row for each file, with its name and the range of its partitions."""
    functions = functions_of(spark)
    expr = functions.expr
    # Parsed once, not once for each file.
    selects = [[expr(each) for each in columns] for columns in content]
    sums = [expr(each) for each in (*aggregates, *_PARTITIONS)]

    def summed(file: ScrubFile) -> DataFrame:
        rows = rows_of(spark, SCHEMA, [file])
        for columns in selects:
            rows = rows.select(*columns)
        return rows.agg(*sums).withColumn("name", functions.lit(file.name))

    frames = (summed(each) for each in files)
    return reduce(lambda one, other: one.union(other), frames).collect()


def _taken_by_slice(spark: SparkSession, files: Sequence[ScrubFile]) -> FileSums:
    expr = functions_of(spark).expr
    rows = rows_of(spark, SCHEMA, files).selectExpr(FILE, _SHIFT, *_FIELDS)
    rows = rows.selectExpr("file", "shift", "partition", "offset", *HALVES)
    names = names_by_hash(files)
    found = FileSums()
    sums = [expr(each) for each in (*AGGREGATES, *_SHIFTS)]
    for row in rows.groupBy("file", "partition").agg(*sums).collect():
        name = names[row["file"]]
        is_one_run = row["least_shift"] == row["largest_shift"]
        distinct = row["record_count"] if is_one_run else 0
        found.setdefault(name, {})[row["partition"]] = SliceSums(_fingerprint(name, row), distinct)
    return found


def _fingerprint(name: str, row: Any) -> Fingerprint:
    if row["placed_count"] != row["record_count"]:
        raise ValueError(f"{name} holds rows without partition or offset")
    return Fingerprint(
        record_count=row["record_count"],
        offset_sum=(row["high_sum"] << 32) + row["low_sum"],
        hash_sums=_hash_sums(row),
        first_offset=row["first_offset"],
        last_offset=row["last_offset"],
    )


def _hash_sums(row: Any) -> tuple[int, int, int, int]:
    return row["first"], row["second"], row["third"], row["fourth"]
