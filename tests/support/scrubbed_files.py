"""Landed files as a scrub is told of them, and what it says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.scrub import BoundedRuns, ExpectedSlice, ReadFile, ScrubFile, ScrubPlan
from tallystick.spark.scrubbing import scrub
from tests.support.landed_rows import fingerprint_of


def a_file(path: Path, *slices: tuple[int, int, int], holes: OffsetRuns | None = None) -> ScrubFile:
    """Slices as partition, first and last offset, both included."""
    expected = tuple(ExpectedSlice(*each, holes or OffsetRuns()) for each in slices)
    return ScrubFile(path.name, f"file://{path}", path.stat().st_size, expected)


def recorded(file: ScrubFile, rows: Sequence[Any]) -> ScrubFile:
    """The file with the fingerprint that the first full read has taken."""
    return replace(file, slices=(replace(file.slices[0], fingerprint=fingerprint_of(rows)),))


def read(spark: SparkSession, *files: ScrubFile) -> list[ReadFile]:
    result = scrub(spark, ScrubPlan("s", files, "file:///none", None))
    assert result.scrub_id == "s"
    return list(result.files)


def runs(*pairs: tuple[int, int]) -> BoundedRuns:
    return BoundedRuns.of(OffsetRuns.of(pairs))
