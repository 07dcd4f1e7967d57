"""The scrubbing function on a warm session: real Parquet files with the landed schema, on disk."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.fingerprint import EMPTY
from tallystick.domain.rows.scrub import (
    BoundedRuns,
    ScrubFile,
    ScrubPlan,
    ScrubResult,
)
from tallystick.spark import scrubbing, slice_sums
from tallystick.spark.landing import SESSION_SETTINGS as LANDING_SETTINGS
from tallystick.spark.scrubbing import SESSION_SETTINGS, scrub, write_result
from tallystick.spark.session_settings import session_settings
from tests.support.landed_rows import a_row, damage, fingerprint_of, write
from tests.support.scrubbed_files import a_file, read, runs

HEADERS: Sequence[Any] = [
    None,
    [],
    [("a", b"1")],
    [("a", None)],
    [("a", b"")],
    [("a", None), ("a", b"a")],
    [("a", b"a"), ("a", None)],
    [("a", None), ("b", None)],
    [("a", b"b"), ("b", None)],
    [("ü", b"\xff\x00\x01"), ("", b"\x02"), ("a", b"\x01\x00\x02")],
]
CONTENT: Sequence[bytes | None] = [None, b"", b"a", b"\x00", b"v" * 31, b"v" * 1000]
AWKWARD = [
    *(
        a_row(offset, key=key, value=value)
        for offset, (key, value) in enumerate((k, v) for k in CONTENT for v in CONTENT)
    ),
    *(a_row(offset, headers=headers) for offset, headers in enumerate(HEADERS, start=36)),
    a_row(46, timestamp_micros=-62_135_596_800_001_000, timestamp_type=1),  # year 0
    a_row(47, timestamp_micros=9_223_372_036_854_775_000),
    a_row(48, timestamp_micros=-1000, timestamp_type=-1),  # of the first message format
    a_row(2**62, partition=2**31 - 1),
]


def runs_of(offsets: Sequence[int]) -> OffsetRuns:
    return OffsetRuns.of((each, each + 1) for each in offsets)


def test_spark_s_row_hash_is_the_defined_one(spark: SparkSession, tmp_path: Path) -> None:
    files = [
        a_file(write(tmp_path / f"{n}.parquet", [row]), (row[0], row[1], row[1]))
        for n, row in enumerate(AWKWARD)
    ]
    found = read(spark, *files)
    for row, file in zip(AWKWARD, found, strict=True):
        assert [each.fingerprint for each in file.slices] == [fingerprint_of([row])], row
        assert file.slices[0].has_its_offsets


def timeless(*fields: tuple[bytes, bytes | None]) -> list[Any]:
    """Rows with these values and keys."""
    return [a_row(n, value=v, key=k, timestamp_micros=None) for n, (v, k) in enumerate(fields)]


@pytest.mark.parametrize(
    "contents",
    [
        [timeless((b"a", b""), (b"b", None)), timeless((b"b", None), (b"a", b""))],
        [[a_row(0, value=b"a", key=key, timestamp_type=None)] for key in (b"", None)],
    ],
)
def test_what_a_row_lacks_takes_nothing_else_out_of_its_hash(
    contents: Sequence[Any], spark: SparkSession, tmp_path: Path
) -> None:
    files = [
        a_file(write(tmp_path / f"{n}.parquet", rows), (0, 0, len(rows) - 1))
        for n, rows in enumerate(contents)
    ]
    one, other = (each.slices[0].fingerprint.hash_sums for each in read(spark, *files))
    assert all(here != there for here, there in zip(one, other, strict=True))


@pytest.mark.usefixtures("either_way")
def test_fingerprints_are_by_file_and_partition(spark: SparkSession, tmp_path: Path) -> None:
    one = [a_row(each, partition=each % 2) for each in range(200)]
    other = [a_row(each, partition=1) for each in range(500, 700)]
    files = [
        a_file(
            write(tmp_path / "gen=1/batch=a/one.parquet", one, row_group_size=7),
            (0, 0, 198),
            (1, 1, 199),
        ),
        a_file(write(tmp_path / "gen=1/batch=b/other.parquet", other), (1, 500, 699)),
    ]
    first, second = read(spark, *files)
    assert [(each.partition, each.fingerprint) for each in first.slices] == [
        (0, fingerprint_of(row for row in one if row[0] == 0)),
        (1, fingerprint_of(row for row in one if row[0] == 1)),
    ]
    assert second.slices[0].fingerprint == fingerprint_of(other)
    assert second.slices[0].has_its_offsets
    assert not first.slices[0].has_its_offsets, "every second offset is missing"


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(
    ("offsets", "missing", "doubled", "foreign"),
    [
        ([*range(100, 300)], runs(), runs(), runs()),
        ([*reversed(range(100, 300))], runs(), runs(), runs()),
        ([*range(100, 163), *range(165, 300)], runs((163, 165)), runs(), runs()),
        ([*range(100, 300), 127, 128, 128, 299], runs(), runs((127, 129), (299, 300)), runs()),
        ([*range(100, 299), 200], runs((299, 300)), runs((200, 201)), runs()),  # right count
        ([*range(99, 300), 400], runs(), runs(), runs((99, 100), (400, 401))),
        ([*range(150, 350)], runs((100, 150)), runs(), runs((300, 350))),
        ([], runs((100, 300)), runs(), runs()),
    ],
    ids=["whole", "backwards", "missing", "doubled", "both", "foreign", "shifted", "empty"],
)
def test_offsets_are_exact(
    spark: SparkSession,
    tmp_path: Path,
    offsets: list[int],
    missing: BoundedRuns,
    doubled: BoundedRuns,
    foreign: BoundedRuns,
) -> None:
    path = write(tmp_path / "a.parquet", [a_row(each) for each in offsets])
    [file] = read(spark, a_file(path, (0, 100, 299)))
    [found] = file.slices
    assert (found.missing, found.doubled, found.foreign) == (missing, doubled, foreign)
    assert found.fingerprint == fingerprint_of([a_row(each) for each in offsets])


@pytest.mark.usefixtures("either_way")
def test_proven_holes_are_no_loss_and_a_row_in_one_is_foreign(
    spark: SparkSession, tmp_path: Path
) -> None:
    holes = OffsetRuns.of([(3, 4), (64, 128), (150, 151)])
    landed = [a_row(each) for each in range(200) if each not in holes]
    swapped = [*landed[:-1], a_row(3)]  # as many rows as were committed
    right = a_file(write(tmp_path / "a.parquet", landed), (0, 0, 199), holes=holes)
    wrong = a_file(write(tmp_path / "b.parquet", swapped), (0, 0, 199), holes=holes)

    [[one], [other]] = ([*each.slices] for each in read(spark, right, wrong))

    assert one.has_its_offsets
    assert (other.missing, other.foreign) == (runs((199, 200)), runs((3, 4)))


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(
    ("lost", "other"), [(70611, 82479), (46796, 55022)], ids=["upper half", "lower half"]
)
def test_an_offset_that_shares_half_a_hash_with_another_is_not_taken_for_it(
    spark: SparkSession, tmp_path: Path, lost: int, other: int
) -> None:
    landed = [a_row(each) for each in (0, other, 100_000)]
    holes = OffsetRuns.of([(1, lost), (lost + 1, 100_000)])
    file = a_file(write(tmp_path / "a.parquet", landed), (0, 0, 100_000), holes=holes)
    [found] = read(spark, file)[0].slices
    assert (found.missing, found.foreign) == (runs((lost, lost + 1)), runs((other, other + 1)))


@pytest.mark.usefixtures("either_way")
def test_a_row_of_a_higher_partition_is_not_taken_for_one_of_the_files(
    spark: SparkSession, tmp_path: Path
) -> None:
    landed = [a_row(each, partition=int(each == 5)) for each in range(20) if each != 9]
    file = a_file(write(tmp_path / "a.parquet", landed), (0, 0, 19), holes=OffsetRuns.of([(9, 10)]))
    [found] = read(spark, file)
    assert [each.has_its_offsets for each in found.slices] == [False, False]


@pytest.mark.parametrize(("has_numpy", "looks"), [(True, []), (False, [2])])
def test_offsets_of_all_slices_are_read_together(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    has_numpy: bool,
    looks: list[int],
) -> None:
    """A packed file of a transactional topic: every slice has a hole."""
    if not has_numpy:
        monkeypatch.setattr(slice_sums, "offset_hash_sum", lambda _: None)
    asked: list[int] = []
    present = scrubbing.present_offsets

    def counted(spark: SparkSession, files: Sequence[ScrubFile]) -> Any:
        asked.append(len(files))
        return present(spark, files)

    monkeypatch.setattr(scrubbing, "present_offsets", counted)
    monkeypatch.delattr(scrubbing, "doubled_offsets")
    files = []
    for name in ("a", "b"):
        rows = [a_row(o, partition=p) for p in range(30) for o in (0, 1, 3)]
        path = write(tmp_path / f"{name}.parquet", rows)
        slices = [(each, 0, 3) for each in range(30)]
        files.append(a_file(path, *slices, holes=OffsetRuns.of([(2, 3)])))
    found = read(spark, *files)
    assert all(each.has_its_offsets for file in found for each in file.slices)
    assert [len(each.slices) for each in found] == [30, 30]
    assert asked == looks


@pytest.mark.usefixtures("either_way")
def test_rows_of_a_partition_that_was_not_committed_are_foreign(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.parquet", [a_row(0), a_row(7, partition=3)])
    [file] = read(spark, a_file(path, (0, 0, 0)))
    assert [(each.partition, each.foreign) for each in file.slices] == [
        (0, runs()),
        (3, runs((7, 8))),
    ]


def test_more_large_files_than_one_query_takes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slice_sums, "_LARGE_ROWS", 2)
    monkeypatch.setattr(slice_sums, "_MOST_SCANS", 2)
    rows = [[a_row(offset, partition=n) for offset in range(3 - n % 2)] for n in range(5)]
    files = [
        a_file(write(tmp_path / f"{n}.parquet", each), (n, 0, len(each) - 1))
        for n, each in enumerate(rows)
    ]
    monkeypatch.delattr(slice_sums, "_taken_by_slice")  # one look at whole runs is enough
    found = read(spark, *files)
    assert [each.slices[0].fingerprint for each in found] == [fingerprint_of(each) for each in rows]


def test_a_file_that_a_cluster_would_read_in_parts_is_counted_from_its_first_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slice_sums, "_LARGE_ROWS", 1)
    monkeypatch.delattr(slice_sums, "_taken_by_slice")
    rows = [a_row(offset, value=b"%d" % offset * 9) for offset in range(400)]
    path = write(tmp_path / "a.parquet", rows, row_group_size=20)
    with session_settings(spark, {"spark.sql.files.maxPartitionBytes": "2000"}):
        assert spark.read.parquet(path.as_uri()).rdd.getNumPartitions() > 1
        [file] = read(spark, a_file(path, (0, 0, 399)))
    assert file.slices[0].has_its_offsets
    assert file.slices[0].fingerprint == fingerprint_of(rows)


def test_a_file_that_has_grown_and_is_read_by_two_tasks_is_not_taken_for_one_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark counts rows from 2**33 in its second task: just so far off are its offsets here."""
    monkeypatch.setattr(slice_sums, "_LARGE_ROWS", 1)
    chance = Random(1)
    offsets = [*range(200), *range(2**33, 2**33 + 200)]
    rows = [a_row(each, value=chance.randbytes(100)) for each in offsets]
    path = write(tmp_path / "a.parquet", rows, row_group_size=200)
    file = a_file(path, (0, 0, 399))
    [found] = read(spark, replace(file, length_bytes=file.length_bytes // 2 + 10))
    assert found.slices[0].missing == runs((200, 400))
    assert found.slices[0].foreign == runs((2**33, 2**33 + 200))


def test_offsets_far_apart_are_compared_chunk_by_chunk(spark: SparkSession, tmp_path: Path) -> None:
    offsets = [0, 5, 2**22 - 1, 2**22, 3 * 2**22 + 7, 2**40]
    holes = OffsetRuns.of([(0, 2**40 + 1)]).difference(runs_of(offsets))
    rows = [a_row(each) for each in offsets]
    moved = [*rows[:4], a_row(2 * 2**22 + 7), rows[5]]
    files = [
        a_file(write(tmp_path / f"{name}.parquet", some), (0, 0, 2**40), holes=holes)
        for name, some in (("whole", rows), ("lacking", rows[:4] + rows[5:]), ("moved", moved))
    ]
    whole, lacking, other = (each.slices[0] for each in read(spark, *files))
    gone = BoundedRuns.of(runs_of([3 * 2**22 + 7]))
    assert whole.has_its_offsets
    assert (lacking.missing, lacking.foreign) == (gone, runs())
    assert (other.missing, other.foreign) == (gone, BoundedRuns.of(runs_of([2 * 2**22 + 7])))


def test_more_runs_than_can_be_named_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", [a_row(each) for each in range(0, 1001, 2)])
    [file] = read(spark, a_file(path, (0, 0, 1000)))
    missing = file.slices[0].missing
    assert (missing.count, missing.run_count, len(missing.runs)) == (500, 500, 100)


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_flipped_byte_is_noticed_by_its_page_s_checksum(
    spark: SparkSession, tmp_path: Path, compression: str
) -> None:
    """Written by Spark, as a landing writes; read by the vectorised reader, as Spark reads."""
    rows = [a_row(each, value=struct.pack(">q", each) * 20) for each in range(2000)]
    source = write(tmp_path / "source.parquet", rows)
    target = tmp_path / "landed"
    options = {"compression": compression, "maxRecordsPerFile": "0"}
    with session_settings(spark, LANDING_SETTINGS):
        frame = spark.read.parquet(source.as_uri()).coalesce(1)
        frame.write.options(**options).parquet(target.as_uri())
    [path] = target.glob("*.parquet")
    whole = a_file(path, (0, 0, 1999))
    [before] = read(spark, whole)
    assert before.slices[0].fingerprint == fingerprint_of(rows)
    plain = spark.read.parquet(path.as_uri()).selectExpr("count(distinct value) AS values")

    (target / f".{path.name}.crc").unlink(missing_ok=True)  # the local file system's, not HDFS's
    damage(path, "value")
    [after] = read(spark, whole)

    assert after.is_damaged
    assert "CRC checksum verification failed" in (after.failure or "")
    assert after.slices == ()
    if compression == "none":
        assert plain.head() is not None, "without verification nobody would know"


@pytest.mark.usefixtures("either_way")
def test_one_bad_file_is_named_and_the_others_are_read(spark: SparkSession, tmp_path: Path) -> None:
    files = [
        a_file(write(tmp_path / f"{n}.parquet", [a_row(each) for each in range(500)]), (0, 0, 499))
        for n in range(5)
    ]
    whole = fingerprint_of(a_row(each) for each in range(500))
    paths = [tmp_path / each.name for each in files]
    damage(paths[1], "value")
    paths[2].write_bytes(paths[2].read_bytes()[:-30])
    paths[3].unlink()

    found = read(spark, *files)

    assert [each.name for each in found] == [each.name for each in files]
    assert [each.is_damaged for each in found] == [False, True, True, False, False]
    assert [bool(each.failure) for each in found] == [False, True, True, True, False]
    assert [each.slices[0].fingerprint for each in (found[0], found[4])] == [whole, whole]


def test_when_everything_fails_the_rest_is_not_tried_and_nothing_is_called_damaged(
    spark: SparkSession, tmp_path: Path
) -> None:
    nowhere = [ScrubFile(f"{n}.parquet", f"nowhere://x/{n}.parquet", 1, ()) for n in range(6)]
    found = read(spark, *nowhere)
    assert not [each for each in found if each.is_damaged or not each.failure]
    assert len([each for each in found if "not tried" in (each.failure or "")]) == 3


@pytest.mark.usefixtures("either_way")
def test_a_file_without_the_columns_is_no_file_of_ours(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1]}), path)
    [found] = read(spark, a_file(path, (0, 0, 0)))
    assert "without partition or offset" in (found.failure or "")


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("column", ["partition", "offset"])
@pytest.mark.parametrize("rows_without", [1, 3])
@pytest.mark.parametrize("holes", [OffsetRuns(), OffsetRuns.of([(1, 2)])], ids=["run", "holes"])
def test_a_row_without_a_place_is_never_proven(
    spark: SparkSession, tmp_path: Path, column: str, rows_without: int, holes: OffsetRuns
) -> None:
    """As many rows as were committed, and all places that are there are right."""
    rows = [a_row(each) for each in range(4) if each not in holes]
    table = pq.read_table(write(tmp_path / "source.parquet", rows))
    kept = table[column].to_pylist()[rows_without:]
    field = table.schema.field(column)
    values = pa.array([None] * (len(rows) - len(kept)) + kept, field.type)
    path = tmp_path / "a.parquet"
    pq.write_table(table.set_column(table.schema.get_field_index(column), column, values), path)

    [found] = read(spark, a_file(path, (0, 0, 3), holes=holes))

    assert "without partition or offset" in (found.failure or "")


def test_the_result_is_one_small_file_and_settings_are_put_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.parquet", [a_row(0)])
    names = [*SESSION_SETTINGS, "spark.sql.shuffle.partitions"]
    before = {name: spark.conf.get(name, None) for name in names}
    plan = ScrubPlan("s", (a_file(path, (0, 0, 0)),), (tmp_path / "result").as_uri(), 1)

    result = scrub(spark, plan)
    write_result(spark, plan, result)

    assert {name: spark.conf.get(name, None) for name in names} == before
    [written] = [each for each in (tmp_path / "result").iterdir() if each.name[0] != "."]
    assert ScrubResult.from_json(written.read_text()) == result
    assert result.files[0].slices[0].fingerprint != EMPTY


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(("offset", "partition"), [(-5, 0), (-(2**63), 0), (2, -1)])
def test_a_row_of_a_negative_place_is_in_no_log(
    spark: SparkSession, tmp_path: Path, offset: int, partition: int
) -> None:
    rows = [a_row(0), a_row(1), a_row(offset, partition=partition)]
    [found] = read(spark, a_file(write(tmp_path / "a.parquet", rows), (0, 0, 2)))
    assert "of a negative partition or offset" in (found.failure or "")
