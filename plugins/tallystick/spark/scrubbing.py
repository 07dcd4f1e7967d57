"""Reads landed files in full: what is in every row, which offsets are there, if pages are whole.

It uses the DataFrame API only, as the landing does. It judges nothing: what was read is compared
with the plan, offset by offset, and written down; what that means is said elsewhere.

1. Every page's checksum is verified; no setting of the cluster lets a damaged file pass as empty.
2. A file that can't be read is named with its reason, and the others are read all the same.
3. The row hash is the one of `domain/row_hash.py`; a test compares them.
4. A large file of one partition is summed up by itself. Sums by file and partition lie in a table
   that Spark looks into at each row, which costs as much as the hashing does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tallystick.domain.fingerprint import EMPTY, Fingerprint
from tallystick.domain.row_hash import (
    KEY_IS_NULL,
    NO_HEADERS,
    NULL_SIGNS,
    SEEDS,
    SEPARATOR,
    VALUE_IS_NULL,
    hash_bytes,
)
from tallystick.domain.runs import OffsetRuns
from tallystick.domain.scrub import (
    ReadFile,
    ReadSlice,
    ScrubFile,
    ScrubPlan,
    ScrubResult,
    compared,
    is_proven_by_counts,
    runs_of_words,
)
from tallystick.spark.causes import failure_of
from tallystick.spark.damage import is_damage
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
SESSION_SETTINGS: Final[Mapping[str, str | None]] = MappingProxyType(
    {
        # A sum that overflows is an error, not another number.
        "spark.sql.ansi.enabled": "true",
        "spark.sql.parquet.enableVectorizedReader": "true",
        # All files are read by the same code, compiled once, whatever place they have in the query.
        "spark.sql.codegen.useIdInClassName": "false",
        # Nothing to adapt to: each query has as many parts as it needs, and is planned once.
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.parquet.filterPushdown": "true",
    }
)
_BATCH_ROWS: Final = "spark.sql.parquet.columnarReaderBatchSize"
_MOST_BATCH_ROWS: Final = 4096
_BATCH_BYTES: Final = 32 << 20
_DECODED_PER_STORED_BYTE: Final = 5
# Spark's 200 parts cost more than what goes through them: a row for every 64 offsets.
_PARTS: Final = "spark.sql.shuffle.partitions"
_MOST_PARTS: Final = 200
_ROWS_PER_PART: Final = 10_000_000
# Below, planning a scan of its own costs more than a file's sums by partition do.
_LARGE_ROWS: Final = 500_000
_MOST_SCANS: Final = 32

# One Spark job reads this much at most: what one unreadable file makes it read again.
_GROUP_BYTES: Final = 4 << 30
_GROUP_FILES: Final = 500
# So many files in a row that fail for no fault of their own: it is Spark or HDFS that is ill.
_MOST_STRANGE_FAILURES: Final = 3

_FILE: Final = "xxhash64(_metadata.file_name) AS file"
_FLAGS: Final = f"if(key IS NULL, {KEY_IS_NULL}, 0) | if(value IS NULL, {VALUE_IS_NULL}, 0)"
_HEADER_COUNT: Final = f"if(headers IS NULL, {NO_HEADERS}, size(headers))"
# A lambda would tell each null simply, and cost half as much again: Spark compiles none.
_JOINED_HEADERS: Final = tuple(
    f"array_join(cast(headers.value AS ARRAY<STRING>), chr({SEPARATOR}), chr({sign}))"
    for sign in NULL_SIGNS
)
_PLACE: Final = f"partition, offset, timestamp, timestamp_type, {_FLAGS}, {_HEADER_COUNT}"
_HALVES: Final = (
    f"xxhash64({SEEDS[0]}L, {_PLACE}, key, value, headers, {', '.join(_JOINED_HEADERS)})"
    " AS high_half",
    f"xxhash64({SEEDS[1]}L, {_PLACE}, crc32(key), crc32(value),"
    f" crc32(cast({_JOINED_HEADERS[0]} AS BINARY))) AS low_half",
)
# Halves of 32 bits: sums of whole 64-bit numbers would overflow.
_AGGREGATES: Final = (
    "count(*) AS record_count",
    "count(if(offset IS NULL, NULL, partition)) AS placed_count",
    # Rows of a file that are as far from their offsets as one another have different offsets.
    "min(offset - row_index) AS least_shift",
    "max(offset - row_index) AS largest_shift",
    "min(offset) AS first_offset",
    "max(offset) AS last_offset",
    "sum(shiftrightunsigned(offset, 32)) AS high_sum",
    "sum(offset & 4294967295L) AS low_sum",
    "sum(shiftrightunsigned(high_half, 32)) AS first",
    "sum(high_half & 4294967295L) AS second",
    "sum(shiftrightunsigned(low_half, 32)) AS third",
    "sum(low_half & 4294967295L) AS fourth",
)
_PARTITIONS: Final = ("min(partition) AS partition", "max(partition) AS last_partition")
_CONTENT: Final = ("partition", "offset", "_metadata.row_index AS row_index", *_HALVES)
_BIT: Final = ("offset >> 6 AS place", "1L << cast(offset & 63 AS INT) AS bit")
_WORD: Final = "bit_or(bit) AS word"


def scrub(spark: SparkSession, plan: ScrubPlan) -> ScrubResult:
    """What every file of the plan holds, or why it can't be read; the files are not changed."""
    read: list[ReadFile] = []
    with session_settings(spark, SESSION_SETTINGS):
        for group in _groups(plan.files):
            read += _Group(spark).read(group)
    return ScrubResult(plan.scrub_id, tuple(read))


def write_result(spark: SparkSession, plan: ScrubPlan, result: ScrubResult) -> None:
    """Write the result as one line of text in one file of the plan's output directory."""
    options = {
        "mapreduce.fileoutputcommitter.algorithm.version": "1",
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "fs.hdfs.impl.disable.cache": "true",
        "dfs.client.block.write.locateFollowingBlock.initial.delay.ms": "10",
    }
    if plan.replication is not None:
        options["dfs.replication"] = str(plan.replication)
    frame = spark.createDataFrame([(result.to_json(),)], "value STRING").coalesce(1)
    frame.write.mode("error").options(**options).text(plan.output)


class _Group:
    """Reads files together, and apart where one of them can't be read."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._strange_failures = 0
        self._why = ""

    def read(self, files: Sequence[ScrubFile]) -> list[ReadFile]:
        """Every file with its slices or its failure, in the order given."""
        waiting, read = [list(files)], dict[str, ReadFile]()
        while waiting:
            some = waiting.pop()
            if self._strange_failures >= _MOST_STRANGE_FAILURES:
                read |= {each.name: ReadFile(each.name, failure=self._why) for each in some}
                continue
            try:
                read |= {each.name: each for each in _read_together(self._spark, some)}
                self._strange_failures = 0
            except Exception as error:  # noqa: BLE001 - whatever a file does to Spark
                reason = failure_of(error)
                if len(some) == 1:
                    read[some[0].name] = self._failed(some[0], reason)
                else:
                    waiting += _apart(some, reason)
        return [read[each.name] for each in files]

    def _failed(self, file: ScrubFile, reason: str) -> ReadFile:
        found = ReadFile(file.name, failure=reason, is_damaged=is_damage(reason))
        self._strange_failures = 0 if found.is_damaged else self._strange_failures + 1
        self._why = f"not tried: others failed before it, the last one so: {reason}"
        return found


def _groups(files: Sequence[ScrubFile]) -> Iterator[list[ScrubFile]]:
    group, size = list[ScrubFile](), 0
    for each in files:
        if group and (size + each.length_bytes > _GROUP_BYTES or len(group) == _GROUP_FILES):
            yield group
            group, size = [], 0
        group.append(each)
        size += each.length_bytes
    if group:
        yield group


def _apart(files: Sequence[ScrubFile], reason: str) -> list[list[ScrubFile]]:
    """The files in parts, each to be read by itself: what Spark named, or else two halves."""
    named = [each for each in files if each.name in reason]
    if named and len(named) < len(files):
        return [[each for each in files if each not in named], named]
    middle = len(files) // 2
    return [list(files[:middle]), list(files[middle:])]


def _read_together(spark: SparkSession, files: Sequence[ScrubFile]) -> list[ReadFile]:
    rows = sum(each.record_count for each in files)
    parts = min(_MOST_PARTS, 1 + rows // _ROWS_PER_PART)
    settings = {_BATCH_ROWS: str(_batch_rows(files, rows)), _PARTS: str(parts)}
    with session_settings(spark, settings):
        taken = _taken(spark, files)
        return [_read_file(spark, each, taken.get(each.name, {})) for each in files]


def _batch_rows(files: Sequence[ScrubFile], rows: int) -> int:
    """How many rows are decoded at once: a batch of large values must fit into memory."""
    size = sum(each.length_bytes for each in files)
    bytes_per_row = _DECODED_PER_STORED_BYTE * size / max(rows, 1)
    return int(max(1, min(_MOST_BATCH_ROWS, _BATCH_BYTES / max(bytes_per_row, 1))))


def _read_file(spark: SparkSession, file: ScrubFile, taken: Mapping[int, _Taken]) -> ReadFile:
    expected = {each.partition: each for each in file.slices}
    slices = []
    for partition in sorted(expected.keys() | taken.keys()):
        wanted, found = expected.get(partition), taken.get(partition, _Taken(EMPTY, 0))
        if is_proven_by_counts(wanted, found.fingerprint, found.distinct_count):
            slices.append(ReadSlice(partition, found.fingerprint))
            continue
        present, doubled = _offsets(spark, file, partition)
        slices.append(
            compared(wanted, partition, found.fingerprint, present=present, doubled=doubled)
        )
    return ReadFile(file.name, tuple(slices))


def _rows(spark: SparkSession, schema: str, files: Sequence[ScrubFile]) -> DataFrame:
    reader = spark.read.schema(schema).options(**READER_OPTIONS)
    return reader.parquet(*(each.uri for each in files))


class _Taken(NamedTuple):
    """What was summed up over one slice."""

    fingerprint: Fingerprint
    distinct_count: int
    """How many different offsets there are; 0 where that is not known yet."""


def _taken(spark: SparkSession, files: Sequence[ScrubFile]) -> dict[str, dict[int, _Taken]]:
    """By file name and partition."""
    large = [each for each in files if len(each.slices) == 1 and each.record_count >= _LARGE_ROWS]
    found: dict[str, dict[int, _Taken]] = {}
    for first in range(0, len(large), _MOST_SCANS):
        found |= _taken_by_file(spark, large[first : first + _MOST_SCANS])
    left = [each for each in files if each.name not in found]
    return found | _taken_by_slice(spark, left) if left else found


def _taken_by_file(spark: SparkSession, files: Sequence[ScrubFile]) -> dict[str, dict[int, _Taken]]:
    """Without the files that hold rows of several partitions."""
    from pyspark.sql.functions import expr, lit  # the module itself is imported without Spark, too

    sums = [expr(each) for each in (*_AGGREGATES, *_PARTITIONS)]
    frames = [
        _rows(spark, SCHEMA, [each])
        .selectExpr(*_CONTENT)
        .agg(*sums)
        .withColumn("name", lit(each.name))
        for each in files
    ]
    found = dict[str, dict[int, _Taken]]()
    for row in reduce(lambda one, other: one.union(other), frames).collect():
        if row["record_count"] == 0:
            found[row["name"]] = {}
        elif row["partition"] == row["last_partition"]:
            found[row["name"]] = {row["partition"]: _taken_from(row["name"], row)}
    return found


def _taken_by_slice(
    spark: SparkSession, files: Sequence[ScrubFile]
) -> dict[str, dict[int, _Taken]]:
    rows = _rows(spark, SCHEMA, files).selectExpr(_FILE, *_CONTENT)
    names = _names(files)
    found: dict[str, dict[int, _Taken]] = {}
    for row in _aggregated(rows, ("file", "partition"), _AGGREGATES).collect():
        name = names[row["file"]]
        found.setdefault(name, {})[row["partition"]] = _taken_from(name, row)
    return found


def _taken_from(name: str, row: Any) -> _Taken:
    if row["placed_count"] != row["record_count"]:
        raise ValueError(f"{name} holds rows without partition or offset")
    fingerprint = Fingerprint(
        record_count=row["record_count"],
        offset_sum=(row["high_sum"] << 32) + row["low_sum"],
        hash_sums=(row["first"], row["second"], row["third"], row["fourth"]),
        first_offset=row["first_offset"],
        last_offset=row["last_offset"],
    )
    is_one_run = row["least_shift"] == row["largest_shift"]
    return _Taken(fingerprint, row["record_count"] if is_one_run else 0)


def _words(spark: SparkSession, files: Sequence[ScrubFile]) -> DataFrame:
    """The offsets as bit maps of 64: one row for each word in which an offset is."""
    rows = _rows(spark, COORDINATES, files).selectExpr(_FILE, "partition", *_BIT)
    return _aggregated(rows, ("file", "partition", "place"), (_WORD,))


def _offsets(spark: SparkSession, file: ScrubFile, partition: int) -> tuple[OffsetRuns, OffsetRuns]:
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
