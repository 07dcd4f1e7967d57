"""The sum of the hashes of offsets, in bulk and one by one."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random

import pytest

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.row_hash import SPARK_SEED, hash_long, wrapped
from tallystick.spark import slice_sums
from tallystick.spark.slice_sums import offset_hash_sum


def one_by_one(offsets: OffsetRuns) -> int:
    return wrapped(sum(hash_long(each, SPARK_SEED) for run in offsets for each in range(*run)))


@pytest.mark.parametrize("block", [1, 2, 7, 64, 1 << 15])
def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(slice_sums, "_BLOCK", block)
    random = Random(block)
    firsts = [0, 2**31 - 3, 2**32 - 3, 2**63 - 40, *(random.randrange(2**62) for _ in range(20))]
    offsets = OffsetRuns.of((first, first + random.randint(1, 39)) for first in firsts)
    assert offset_hash_sum(offsets) == one_by_one(offsets)


def test_nothing_adds_up_to_nothing() -> None:
    assert offset_hash_sum(OffsetRuns()) == 0


def test_without_numpy_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    assert offset_hash_sum(OffsetRuns.of([(0, 3)])) is None


def test_a_processor_that_is_too_old_for_numpy_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text("raise RuntimeError('built with baseline optimizations')")
    monkeypatch.delitem(sys.modules, "numpy")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert offset_hash_sum(OffsetRuns.of([(0, 3)])) is None
