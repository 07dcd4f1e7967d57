"""Which offsets the rows of slices have: read by themselves where sums do not prove them.

Two columns of a file are read again, as bit maps: a few bytes for every 64 offsets come back. Which
offsets are there twice is asked only where there are more rows than offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from tallystick.domain.offset_words import runs_of_words, words_of_runs
from tallystick.domain.runs import OffsetRuns
from tallystick.domain.scrub import ExpectedSlice, ScrubFile
from tallystick.spark.landed_files import FILE, names_by_hash, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COORDINATES: Final = "partition INT, offset BIGINT"
_BIT: Final = ("offset >> 6 AS place", "1L << cast(offset & 63 AS INT) AS bit")


def present_offsets(
    spark: SparkSession, files: Sequence[ScrubFile]
) -> dict[tuple[str, int], OffsetRuns]:
    """The offsets that one row or more has, by file name and partition, in one Spark job."""
    expected = {(file.name, each.partition): each for file in files for each in file.slices}
    return {key: _runs(words, expected.get(key)) for key, words in _words_by_slice(spark, files)}


def doubled_offsets(spark: SparkSession, file: ScrubFile, partition: int) -> OffsetRuns:
    """The offsets of a slice that two rows or more have."""
    from pyspark.sql.functions import expr  # the module itself is imported without Spark, too

    rows = rows_of(spark, COORDINATES, [file]).where(f"partition = {partition}")
    twice = rows.groupBy("offset").count().where("count > 1").selectExpr(*_BIT)
    words = twice.groupBy("place").agg(expr("bit_or(bit) AS word")).toLocalIterator()
    return runs_of_words((row["place"], row["word"]) for row in words)


def _words_by_slice(
    spark: SparkSession, files: Sequence[ScrubFile]
) -> Iterator[tuple[tuple[str, int], list[tuple[int, int]]]]:
    """Each slice with its bit map, sorted; never more than one part of all at once in memory."""
    from pyspark.sql.functions import expr  # the module itself is imported without Spark, too

    def grouped(frame: DataFrame, keys: Sequence[str], *sums: str) -> DataFrame:
        return frame.groupBy(*keys).agg(*(expr(each) for each in sums))

    names = names_by_hash(files)
    bits = rows_of(spark, COORDINATES, files).selectExpr(FILE, "partition", *_BIT)
    words = grouped(bits, ("file", "partition", "place"), "bit_or(bit) AS word")
    lists = ("collect_list(place) AS places", "collect_list(word) AS words")
    for row in grouped(words, ("file", "partition"), *lists).toLocalIterator():
        pairs = zip(row["places"], row["words"], strict=True)
        yield (names[row["file"]], row["partition"]), sorted(pairs)


def _runs(words: Sequence[tuple[int, int]], expected: ExpectedSlice | None) -> OffsetRuns:
    """The offsets; where they are the expected ones, those, for that is found out faster."""
    wanted = expected.offsets if expected else OffsetRuns()
    return wanted if words == list(words_of_runs(wanted)) else runs_of_words(words)
