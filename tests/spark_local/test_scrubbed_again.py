"""Files of which rows are on record, or whose offsets' hashes are: read once if they hold these."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.row_hash import SPARK_SEED, hash_long
from tallystick.domain.rows.scrub import BoundedRuns, ScrubFile
from tallystick.spark import scrubbing, slice_sums
from tests.support.landed_rows import a_row, fingerprint_of, write
from tests.support.scrubbed_files import a_file, read, recorded, runs

HOLES = OffsetRuns.of([(3, 4), (64, 128), (150, 151)])
LANDED = [a_row(each) for each in range(200) if each not in HOLES]


@pytest.mark.parametrize("way", ["by file", "by slice"])
def test_rows_on_record_and_offsets_whose_hashes_are_summed_are_read_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    if way == "by file":
        monkeypatch.setattr(slice_sums, "_LARGE_ROWS", 1)
        monkeypatch.delattr(slice_sums, "_taken_by_slice")
    for second_look in ("present_offsets", "doubled_offsets"):
        monkeypatch.delattr(scrubbing, second_look)
    file = a_file(write(tmp_path / "a.parquet", LANDED), (0, 0, 199), holes=HOLES)
    for each in (file, recorded(file, LANDED)):
        [found] = read(spark, each)
        assert found.slices[0].has_its_offsets
        assert found.slices[0].fingerprint == fingerprint_of(LANDED)


def test_rows_on_record_are_read_once_in_whatever_order_they_lie(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slice_sums, "_LARGE_ROWS", 1)
    again = slice_sums._taken_by_slice
    asked: list[str] = []

    def noted(spark: SparkSession, files: Sequence[ScrubFile]) -> Any:
        asked.extend(each.name for each in files)
        return again(spark, files)

    monkeypatch.setattr(slice_sums, "_taken_by_slice", noted)
    rows = {name: [a_row(each) for each in range(9, -1, -1)] for name in ("a", "b", "c")}
    now = rows | {"b": [*rows["b"][:-1], a_row(0, value=b"other")]}
    files = [
        recorded(a_file(write(tmp_path / f"{name}.parquet", now[name]), (0, 0, 9)), rows[name])
        for name in rows
    ]
    found = read(spark, *files)
    assert asked == ["b.parquet"]
    assert [each.slices[0].fingerprint for each in found] == list(map(fingerprint_of, now.values()))


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(
    "now",
    [
        [a_row(0), a_row(1, value=b"other"), a_row(2)],
        [a_row(0), a_row(2)],
        [a_row(0), a_row(1), a_row(1), a_row(2)],
        [a_row(0), a_row(2), a_row(2)],
        [],
    ],
    ids=["changed", "missing", "doubled", "one in place of another", "none"],
)
def test_rows_of_one_run_that_are_not_those_on_record_are_looked_at(
    spark: SparkSession, tmp_path: Path, now: list[Any]
) -> None:
    file = a_file(write(tmp_path / "a.parquet", now), (0, 0, 2))
    before = [a_row(each) for each in range(3)]
    [found] = read(spark, recorded(file, before))[0].slices
    assert found.fingerprint == fingerprint_of(now)
    assert found.has_its_offsets is ([row[1] for row in now] == [0, 1, 2])


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(
    ("now", "missing", "doubled"),
    [
        ([*LANDED[:-1], a_row(199, value=b"other")], runs(), runs()),
        (LANDED[:-1], runs((199, 200)), runs()),
        ([*LANDED, LANDED[7]], runs(), runs((8, 9))),
        ([*LANDED[:6], *LANDED[7:], LANDED[7]], runs((7, 8)), runs((8, 9))),
    ],
    ids=["changed", "missing", "doubled", "one in place of another"],
)
def test_rows_that_are_not_those_on_record_are_looked_at(
    spark: SparkSession, tmp_path: Path, now: list[Any], missing: BoundedRuns, doubled: BoundedRuns
) -> None:
    file = a_file(write(tmp_path / "a.parquet", now), (0, 0, 199), holes=HOLES)
    for each in (file, recorded(file, LANDED)):
        [found] = read(spark, each)[0].slices
        assert (found.missing, found.doubled, found.foreign) == (missing, doubled, runs())
        assert found.fingerprint == fingerprint_of(now)


HASHED_LIKE_NULL = 7997738013315500161
"""Spark hashes null to the seed, and this offset as well."""


@pytest.mark.usefixtures("either_way")
def test_a_row_without_an_offset_stands_for_none(spark: SparkSession, tmp_path: Path) -> None:
    offsets = [HASHED_LIKE_NULL + each for each in (-2, -1, 0, 1, 3)]
    assert hash_long(HASHED_LIKE_NULL, SPARK_SEED) == SPARK_SEED
    landed = [a_row(each) for each in offsets]
    table = pq.read_table(write(tmp_path / "whole.parquet", landed))
    at = table.schema.get_field_index("offset")
    none = pa.array([*offsets[:2], None, *offsets[3:]], pa.int64())
    pq.write_table(table.set_column(at, table.schema.field(at), none), tmp_path / "a.parquet")
    hole = HASHED_LIKE_NULL + 2
    slices = (0, offsets[0], offsets[-1])
    file = a_file(tmp_path / "a.parquet", slices, holes=OffsetRuns.of([(hole, hole + 1)]))
    for each in (file, recorded(file, landed)):
        [found] = read(spark, each)
        assert "without partition or offset" in str(found.failure)


def test_without_numpy_a_large_file_is_not_read_for_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slice_sums, "_LARGE_ROWS", 1)
    monkeypatch.setattr(slice_sums, "offset_hash_sum", lambda _: None)
    monkeypatch.delattr(slice_sums, "_taken_first")
    [found] = read(spark, a_file(write(tmp_path / "a.parquet", LANDED), (0, 0, 199), holes=HOLES))
    assert found.slices[0].has_its_offsets
