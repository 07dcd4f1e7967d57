"""Landed files as rows of Spark, and the offsets of their slices where sums do not prove them.

1. Files are read by name, as they lie there. Every page's checksum is verified; no setting of the
   cluster lets a damaged file pass as empty.
2. Two columns are read again for offsets, as bit maps: a few bytes for every 64 offsets come back.
   Which ones are there twice is asked only where there are more rows than offsets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tallystick.domain.batches.standing_batch import SliceKey
from tallystick.domain.offsets.offset_words import runs_of_words, words_of_runs
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.row_hash import hash_bytes, wrapped
from tallystick.domain.rows.scrub import ScrubFile
from tallystick.spark.session_settings import functions_of

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
COORDINATES: Final = "partition INT, offset BIGINT"
# Sums tell of the others.
_HAS_PLACE: Final = "partition IS NOT NULL AND offset IS NOT NULL"
_WORD_BITS: Final = 6
_CHUNK_BITS: Final = 22
_WORD: Final = "bit_or(bit) AS word"
_LISTS: Final = ("collect_list(place) AS places", "collect_list(word) AS words")
_BIT: Final = ("offset >> 6 AS place", "1L << cast(offset & 63 AS INT) AS bit")


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


def present_offsets(spark: SparkSession, files: Sequence[ScrubFile]) -> dict[SliceKey, OffsetRuns]:
    """The offsets that one row or more has, of every slice with a row.

    One Spark job compares them with those that should be there; only slices where they differ are
    read again, each by itself.
    """
    expected = {
        SliceKey(file.name, each.partition): each.offsets for file in files for each in file.slices
    }
    by_name = {each.name: each for each in files}
    agreeing, unlike = Counter[SliceKey](), set[SliceKey]()
    for key, chunk, words in _chunks(spark, files):
        first = chunk << _CHUNK_BITS
        wanted = expected.get(key, OffsetRuns()).clipped(first, first + (1 << _CHUNK_BITS))
        if words == list(words_of_runs(wanted)):
            agreeing[key] += wanted.count
        else:
            unlike.add(key)
    unlike |= {key for key, count in agreeing.items() if count < expected[key].count}
    return {key: expected[key] for key in agreeing.keys() - unlike} | {
        key: _offsets(spark, by_name[key.name], key.partition, at_least=1) for key in unlike
    }


def doubled_offsets(spark: SparkSession, file: ScrubFile, partition: int) -> OffsetRuns:
    """The offsets of a slice that two rows or more have."""
    return _offsets(spark, file, partition, at_least=2)


def _offsets(spark: SparkSession, file: ScrubFile, partition: int, *, at_least: int) -> OffsetRuns:
    """The offsets of a slice that so many rows have."""
    rows = rows_of(spark, COORDINATES, [file]).where(f"{_HAS_PLACE} AND partition = {partition}")
    if at_least > 1:
        rows = rows.groupBy("offset").count().where(f"count >= {at_least}")
    words = _grouped(rows.selectExpr(*_BIT), ("place",), _WORD).toLocalIterator()
    return runs_of_words((row["place"], row["word"]) for row in words)


def _chunks(
    spark: SparkSession, files: Sequence[ScrubFile]
) -> Iterator[tuple[SliceKey, int, list[tuple[int, int]]]]:
    """The slices' bit maps in chunks of four million offsets: which one, and its words, sorted."""
    names = names_by_hash(files)
    rows = rows_of(spark, COORDINATES, files).where(_HAS_PLACE)
    bits = rows.selectExpr(FILE, "partition", *_BIT)
    words = _grouped(bits, ("file", "partition", "place"), _WORD)
    chunked = words.selectExpr("*", f"place >> {_CHUNK_BITS - _WORD_BITS} AS chunk")
    keys = ("file", "partition", "chunk")
    for row in _grouped(chunked, keys, *_LISTS).toLocalIterator():
        pairs = zip(row["places"], row["words"], strict=True)
        yield SliceKey(names[row["file"]], row["partition"]), row["chunk"], sorted(pairs)


def _grouped(frame: DataFrame, keys: Sequence[str], *sums: str) -> DataFrame:
    expr = functions_of(frame).expr
    return frame.groupBy(*keys).agg(*(expr(each) for each in sums))
