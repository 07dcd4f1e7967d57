"""The rows of each slice are summed up, by the row hash of `domain.rows.row_hash` as Spark has it.

1. A large file of one partition is summed up by itself. Sums by file and partition lie in a table
   that Spark looks into at each row, which costs as much as the hashing does.
2. Of such a file one thing is asked, and it is read again, in the other way, where that does not
   hold. With rows on record: that it holds those, by their hashes. Else, without holes: that all
   its rows are as far from their offsets as the first one, counted as they are read, by one task;
   then it is one run. With holes: that its offsets' hashes add up to those of the committed ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.fingerprint import Fingerprint
from tallystick.domain.rows.row_hash import (
    HEADER_COUNT_AT,
    KEY_IS_NULL,
    NO_HEADERS,
    NULL_SIGNS,
    PARTITION_AT,
    SEPARATOR,
    SPARK_SEED,
    TIMESTAMP_TYPE_AT,
    VALUE_IS_NULL,
    hash_long,
    wrapped,
)
from tallystick.domain.rows.scrub import ScrubFile, is_proven_by_sums
from tallystick.spark.landed_files import FILE, names_by_hash, rows_of
from tallystick.spark.session_settings import functions_of, session_settings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
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

# No landing writes null for these; a file that was written anew may have it. What is null is left
# out of a hash, with all that shares its word.
_TIMESTAMP: Final = "ifnull(timestamp, -1L)"
_TIMESTAMP_TYPE: Final = "ifnull(timestamp_type, -2)"
_SMALL: Final = (
    f"shiftleft(cast(partition AS BIGINT), {PARTITION_AT})"
    f" ^ shiftleft(cast(if(headers IS NULL, {NO_HEADERS}, size(headers)) AS BIGINT),"
    f" {HEADER_COUNT_AT})"
    f" ^ shiftleft(cast({_TIMESTAMP_TYPE} AS BIGINT), {TIMESTAMP_TYPE_AT})"
    f" ^ if(key IS NULL, {KEY_IS_NULL}L, 0L) ^ if(value IS NULL, {VALUE_IS_NULL}L, 0L)"
)
_CHECKSUMS: Final = "shiftleft(ifnull(crc32(key), 0L), 32) ^ ifnull(crc32(value), 0L)"
# A lambda would tell each null simply, and cost half as much again: Spark compiles none.
_JOINED_HEADERS: Final = tuple(
    f"array_join(cast(headers.value AS ARRAY<STRING>), chr({SEPARATOR}), chr({sign}))"
    for sign in NULL_SIGNS
)
PLACE: Final = f"xxhash64(xxhash64(offset) ^ {_TIMESTAMP}, {_SMALL}) AS place"
"""Column `place`, which both halves are made of: to be selected before them."""
HALVES: Final = (
    f"xxhash64(place, key, value, headers, {', '.join(_JOINED_HEADERS)}) AS high_half",
    f"xxhash64(~place ^ {_CHECKSUMS}, crc32(cast({_JOINED_HEADERS[0]} AS BINARY))) AS low_half",
)
"""Columns `high_half` and `low_half`, as signed numbers of 64 bits."""

_FIELDS: Final = ("partition", "offset", "key", "value", "headers", PLACE)
# Rows of a file that are as far from their offsets as one another have different offsets.
_SHIFT: Final = "offset - _metadata.row_index AS shift"
_SHIFTS: Final = ("min(shift) AS least_shift", "max(shift) AS largest_shift")
_PARTITIONS: Final = ("min(partition) AS partition", "max(partition) AS last_partition")
# Sums of hashes wrap, as a fingerprint's do: a scrub switches ANSI mode off.
_ROW_SUMS: Final = (
    "count(*) AS record_count",
    "sum(high_half) AS high_hash_sum",
    "sum(low_half) AS low_hash_sum",
)
# Nearly free: eight bytes of each row are hashed once more.
_OFFSET_HASH: Final = "xxhash64(offset) AS offset_hash"
_OFFSET_HASH_SUM: Final = "sum(offset_hash) AS offset_hash_sum"
CONTENT: Final = ("partition", "offset", _OFFSET_HASH, *HALVES)
AGGREGATES: Final = (
    *_ROW_SUMS,
    "count(if(offset IS NULL, NULL, partition)) AS placed_count",
    "min(offset) AS first_offset",
    "max(offset) AS last_offset",
    "sum(shiftrightunsigned(offset, 32)) AS high_offset_sum",
    "sum(offset & 4294967295L) AS low_offset_sum",
    _OFFSET_HASH_SUM,
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
_RUN_AGGREGATES: Final = (*_ROW_SUMS, *_SHIFTS)
# Spark hashes null to the seed, which one offset's hash is, too.
_PLACED: Final = f"if(offset IS NULL, {_NOWHERE}, coalesce(partition, {_NOWHERE})) AS partition"
_KNOWN_CONTENT: Final = (_PLACED, *HALVES)
_FIRST_CONTENT: Final = (*_KNOWN_CONTENT, "offset", _OFFSET_HASH)
_FIRST_AGGREGATES: Final = (
    *_ROW_SUMS,
    _OFFSET_HASH_SUM,
    "min(offset) AS first_offset",
    "max(offset) AS last_offset",
)
_BLOCK: Final = 1 << 13
"""So many offsets stay in a processor's cache while they are hashed. For copies of 128 kB and more
the kernel would be asked each time, which takes as long as the hashing."""


class SliceSums(NamedTuple):
    """One slice has these sums."""

    fingerprint: Fingerprint
    has_its_offsets: bool
    """True where sums prove that the committed offsets are there, each once, and no other one."""


FileSums = dict[str, dict[int, SliceSums]]
"""By file name and partition; a file without rows is there without a partition."""


def sums_of(spark: SparkSession, files: Sequence[ScrubFile]) -> FileSums:
    """Sums up every file; raises ValueError for rows whose place is no place in a log."""
    large = [each for each in files if len(each.slices) == 1 and each.record_count >= _LARGE_ROWS]
    found = FileSums()
    known = {each.name: sums for each in large if (sums := each.slices[0].known)}
    for some in _some([each for each in large if each.name in known]):
        found |= _taken_as_known(spark, some, known)
    unknown = [each for each in large if each.name not in known]
    for some in _some([each for each in unknown if not each.slices[0].holes]):
        found |= _taken_as_runs(spark, some)
    if offset_hash_sum(OffsetRuns()) is not None:  # else a read would prove nothing
        for some in _some([each for each in unknown if each.slices[0].holes]):
            found |= _taken_first(spark, some)
    left = [each for each in files if each.name not in found]
    return found | _taken_by_slice(spark, left) if left else found


def _some(files: Sequence[ScrubFile]) -> Iterator[Sequence[ScrubFile]]:
    """The files in parts, as many as one query takes."""
    for first in range(0, len(files), _MOST_SCANS):
        yield files[first : first + _MOST_SCANS]


def _taken_as_runs(spark: SparkSession, files: Sequence[ScrubFile]) -> FileSums:
    """Takes the files that hold just the run of offsets that they should."""
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
        elif is_one_run and _is_of(row, wanted.partition):
            offset_sum = count * (first + last) // 2
            sums = Fingerprint(count, offset_sum, _hash_sums(row), first, last)
            found[row["name"]] = {
                wanted.partition: SliceSums(sums, is_proven_by_sums(wanted, sums, count))
            }
    return found


def _taken_as_known(
    spark: SparkSession, files: Sequence[ScrubFile], known: Mapping[str, Fingerprint]
) -> FileSums:
    """Takes the files that hold the rows on record."""
    expected = {each.name: each.slices[0].partition for each in files}
    found = FileSums()
    for row in _summed_by_file(spark, files, (_FIELDS, _KNOWN_CONTENT), _ROW_SUMS):
        name, partition = row["name"], expected[row["name"]]
        if _are_known(row, known[name]) and _is_of(row, partition):
            found[name] = {partition: SliceSums(known[name], True)}
    return found


def _taken_first(spark: SparkSession, files: Sequence[ScrubFile]) -> FileSums:
    """Takes the files that hold the committed offsets."""
    expected = {each.name: each.slices[0] for each in files}
    found = FileSums()
    # The committed offsets are hashed here while Spark reads. What has not begun when Spark fails
    # is dropped.
    pool = ThreadPoolExecutor(1, thread_name_prefix="offsets")
    try:
        hashing = {
            name: pool.submit(offset_hash_sum, each.offsets) for name, each in expected.items()
        }
        rows = _summed_by_file(spark, files, (_FIELDS, _FIRST_CONTENT), _FIRST_AGGREGATES)
        hashes = {name: each.result() for name, each in hashing.items()}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    for row in rows:
        wanted, hashed = expected[row["name"]], hashes[row["name"]]
        offset_sum, bounds = wanted.offsets.sum, (row["first_offset"], row["last_offset"])
        sums = Fingerprint(row["record_count"], offset_sum, _hash_sums(row), *bounds)
        has_its_offsets = wanted.fits(sums) and hashed == row["offset_hash_sum"]
        if has_its_offsets and _is_of(row, wanted.partition):
            found[row["name"]] = {wanted.partition: SliceSums(sums, True)}
    return found


def _are_known(row: Any, known: Fingerprint) -> bool:
    return (row["record_count"], _hash_sums(row)) == (known.record_count, known.hash_sums)


def _is_of(row: Any, partition: int) -> bool:
    return row["partition"] == row["last_partition"] == partition


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
    rows = rows.selectExpr("file", "shift", *CONTENT)
    names = names_by_hash(files)
    expected = {(file.name, each.partition): each for file in files for each in file.slices}
    found = FileSums()
    sums = [expr(each) for each in (*AGGREGATES, *_SHIFTS)]
    for row in rows.groupBy("file", "partition").agg(*sums).collect():
        name = names[row["file"]]
        taken, wanted = _fingerprint(name, row), expected.get((name, row["partition"]))
        distinct = row["record_count"] if row["least_shift"] == row["largest_shift"] else 0
        is_proven = is_proven_by_sums(wanted, taken, distinct) or (
            wanted is not None
            and bool(wanted.holes)
            and wanted.fits(taken)
            and offset_hash_sum(wanted.offsets) == row["offset_hash_sum"]
        )
        found.setdefault(name, {})[row["partition"]] = SliceSums(taken, is_proven)
    return found


def _fingerprint(name: str, row: Any) -> Fingerprint:
    if row["placed_count"] != row["record_count"]:
        raise ValueError(f"{name} holds rows without partition or offset")
    if min(row["partition"], row["first_offset"]) < 0:
        raise ValueError(f"{name} holds rows of a negative partition or offset")
    return Fingerprint(
        record_count=row["record_count"],
        offset_sum=(row["high_offset_sum"] << 32) + row["low_offset_sum"],
        hash_sums=_hash_sums(row),
        first_offset=row["first_offset"],
        last_offset=row["last_offset"],
    )


def _hash_sums(row: Any) -> tuple[int, int]:
    # Of a file without rows: two that are None, which nothing on record is.
    return row["high_hash_sum"], row["low_hash_sum"]


def offset_hash_sum(offsets: OffsetRuns) -> int | None:
    """The sum of each offset's XXH64, as Spark hashes it, modulo 2^64, signed.

    It finds accidents, not forgers: of sets that differ by chance one in 2^64 has the sum of
    another. None where numpy can't be loaded: a cluster's driver may lack it, or its processor be
    too old for it. Python alone takes too long.

    >>> offset_hash_sum(OffsetRuns.of([(3, 5)]))
    3593036533847674734
    """
    try:
        import numpy  # noqa: F401
    except (ImportError, RuntimeError):
        return None
    total = 0
    for block in _blocks(offsets):
        hashes = cast("NDArray[np.uint64]", hash_long(cast(int, block), SPARK_SEED))
        total += int(hashes.sum())
    return wrapped(total)


def _blocks(offsets: OffsetRuns) -> Iterator[NDArray[np.uint64]]:
    """Every offset once, so many at a time as a block holds."""
    firsts, counts, left = list[int](), list[int](), _BLOCK
    for first, until in offsets:
        while first < until:
            count = min(until - first, left)
            firsts.append(first)
            counts.append(count)
            first, left = first + count, left - count
            if not left:
                yield _listed(firsts, counts)
                firsts, counts, left = [], [], _BLOCK
    if counts:
        yield _listed(firsts, counts)


def _listed(firsts: list[int], counts: list[int]) -> NDArray[np.uint64]:
    """So many numbers from each of the first ones on."""
    import numpy as np

    each = np.array(counts)
    ends = np.cumsum(each)
    numbers = np.arange(ends[-1]) + np.repeat(np.array(firsts) - (ends - each), each)
    return cast("NDArray[np.uint64]", numbers.view(np.uint64))
