"""Reads landed files in full: what is in every row, which offsets are there, if pages are whole.

It uses the DataFrame API only, as the landing does. It judges nothing: what was read is compared
with the plan, offset by offset, and written down; what that means is said elsewhere.

1. Files are read together, as many as fit into one Spark job.
2. A file that can't be read is named with its reason, and the others are read all the same.
3. When all files fail, the rest is not tried: it is Spark or HDFS that is ill, not the files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tallystick.domain.batches.standing_batch import SliceKey
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.fingerprint import EMPTY
from tallystick.domain.rows.scrub import (
    ReadFile,
    ReadSlice,
    ScrubFile,
    ScrubPlan,
    ScrubResult,
    compared,
)
from tallystick.spark.application import write_text
from tallystick.spark.causes import failure_of
from tallystick.spark.landed_files import doubled_offsets, present_offsets
from tallystick.spark.session_settings import DEFAULTS, session_settings
from tallystick.spark.slice_sums import FileSums, SliceSums, sums_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SESSION_SETTINGS: Final[Mapping[str, str | None]] = MappingProxyType(
    {
        **DEFAULTS,
        # Sums of hashes are meant to wrap. No other sum can: that takes 2^31 rows in one slice.
        "spark.sql.ansi.enabled": "false",
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
# One Spark job reads this much at most: what one unreadable file makes it read again.
_GROUP_BYTES: Final = 4 << 30
_GROUP_FILES: Final = 500
_NO_ROWS: Final = SliceSums(EMPTY, False)
# So many files in a row that fail for no fault of their own: it is Spark or HDFS that is ill.
_MOST_STRANGE_FAILURES: Final = 3
# Words of parquet-mr, its codecs and thrift about bytes that did arrive. What HDFS says about bytes
# that did not (a block without a living copy, a refused connection) is no proof of anything.
_DAMAGE: Final = re.compile(
    r"CRC checksum verification failed"
    r"|is not a Parquet file|[Ee]xpected magic number|corrupted file:"
    r"|ParquetDecodingException|can not read class org\.apache\.parquet\.format"
    r"|Required field '\w+' was not found in serialized data|TProtocolException"
    r"|Reached the end of stream with \d+ bytes left to read"
    r"|ZstdIOException|Decompression error|Corrupted block|FAILED_TO_UNCOMPRESS|MalformedInput"
    r"|Unknown frame descriptor|Restored data doesn't match checksum|Src size is incorrect"
)
_UNREACHED: Final = re.compile(
    r"ConnectException|BlockMissingException|Could not obtain block|SafeModeException"
    r"|StandbyException|SocketTimeoutException|UnknownHostException|RetriableException"
    r"|AccessControlException|FileNotFoundException|PATH_NOT_FOUND|OutOfMemoryError"
)


def scrub(
    spark: SparkSession,
    plan: ScrubPlan,
    *,
    is_no_file: Callable[[Exception], bool] = lambda _: False,
) -> ScrubResult:
    """Returns what every file of the plan holds, or why it can't be read; changes no file.

    An error for which `is_no_file` holds is raised: no file is to blame for it.
    """
    read: list[ReadFile] = []
    with session_settings(spark, SESSION_SETTINGS):
        for group in _groups(plan.files):
            read += _Group(spark, is_no_file).read(group)
    return ScrubResult(plan.scrub_id, tuple(read))


def write_result(spark: SparkSession, plan: ScrubPlan, result: ScrubResult) -> None:
    """Write the result as one line of text in one file of the plan's output directory."""
    write_text(spark, result.to_json(), plan.output, plan.replication)


class _Group:
    """Reads files together, and apart where one of them can't be read."""

    def __init__(self, spark: SparkSession, is_no_file: Callable[[Exception], bool]) -> None:
        self._spark = spark
        self._is_no_file = is_no_file
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
            except Exception as error:
                if self._is_no_file(error):
                    raise
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
        taken = sums_of(spark, files)
        unproven = {each.name: _open_slices(each, taken) for each in files}
        rest = [each for each in files if unproven[each.name]]
        present = present_offsets(spark, rest) if rest else {}
        return [
            _read_file(spark, each, taken.get(each.name, {}), unproven[each.name], present)
            for each in files
        ]


def _batch_rows(files: Sequence[ScrubFile], rows: int) -> int:
    """Says how many rows are decoded at once: a batch of large values must fit into memory."""
    size = sum(each.length_bytes for each in files)
    bytes_per_row = _DECODED_PER_STORED_BYTE * size / max(rows, 1)
    return int(max(1, min(_MOST_BATCH_ROWS, _BATCH_BYTES / max(bytes_per_row, 1))))


def _open_slices(file: ScrubFile, taken: FileSums) -> set[int]:
    """The partitions whose offsets are not proven by their sums."""
    expected, found = {each.partition: each for each in file.slices}, taken.get(file.name, {})
    return {
        partition
        for partition in expected.keys() | found.keys()
        if not found.get(partition, _NO_ROWS).has_its_offsets
    }


def _read_file(
    spark: SparkSession,
    file: ScrubFile,
    found: Mapping[int, SliceSums],
    unproven: Collection[int],
    present: Mapping[SliceKey, OffsetRuns],
) -> ReadFile:
    expected = {each.partition: each for each in file.slices}
    slices = []
    for partition in sorted(expected.keys() | found.keys()):
        fingerprint = found.get(partition, _NO_ROWS).fingerprint
        if partition not in unproven:
            slices.append(ReadSlice(partition, fingerprint))
            continue
        offsets = present.get(SliceKey(file.name, partition), OffsetRuns())
        has_doubled = fingerprint.record_count > offsets.count
        doubled = doubled_offsets(spark, file, partition) if has_doubled else OffsetRuns()
        slices.append(
            compared(
                expected.get(partition), partition, fingerprint, present=offsets, doubled=doubled
            )
        )
    return ReadFile(file.name, tuple(slices))


def is_damage(reason: str) -> bool:
    """True when the reason proves that a file's bytes are no longer a whole Parquet file.

    >>> is_damage("could not verify page integrity, CRC checksum verification failed")
    True
    >>> is_damage("Could not read footer; caused by ConnectException: refused")
    False
    """
    return bool(_DAMAGE.search(reason)) and not _UNREACHED.search(reason)
