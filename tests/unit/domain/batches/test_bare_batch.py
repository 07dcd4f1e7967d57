"""A batch from the rows of its files. The numbers are the invariants of `bare_batch`."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tallystick.domain.batches.bare_batch import (
    BareBatch,
    Life,
    batch_of_rows,
    lives_in,
    plan_of_rows,
    replacing,
)
from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.landed import FileSlice, ReadBack
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.states import HoleClass, Isolation
from tallystick.domain.identities import AttemptId
from tallystick.domain.offsets.runs import OffsetRuns
from tests.support.builders import TOPIC, a_file, a_manifest

PATH = BatchPath.parse("/landing/orders/gen=1/dt=2026-11-01/hour=07/batch=0123456789abcdef")
LIFE = Life("cluster", "topic")
FILE = a_file("one.parquet", FileSlice(0, 3, 9, 5))
ROWS = OffsetRuns.of([(3, 5), (7, 10)])
MARKERS = {HoleClass.CONTROL: OffsetRuns.of([(5, 7)])}


def entered(
    causes: Mapping[int, Mapping[HoleClass, OffsetRuns]], doubled: OffsetRuns | None = None
) -> BareBatch:
    found = ReadBack((FILE,), {0: ROWS}, {0: doubled} if doubled else {})
    plan = plan_of_rows(PATH, TOPIC, LIFE, found)
    return batch_of_rows(
        PATH,
        plan,
        found,
        causes,
        {},
        attempt_id=AttemptId("f" * 16),
        isolation=Isolation.READ_COMMITTED,
    )


def test_it_claims_what_lies_from_its_first_row_to_its_last_one() -> None:
    # Invariant 1 of `bare_batch`.
    batch = entered({0: MARKERS})
    assert batch.manifest
    assert [str(each.offsets) for each in batch.manifest.plan.ranges] == [f"{TOPIC}-0 [3, 10)"]
    assert (batch.manifest.record_count, batch.manifest.hole_count) == (5, 2)
    assert BatchPath.of(batch.manifest.plan) == PATH
    assert Manifest.from_json(batch.manifest.to_json()) == batch.manifest


@pytest.mark.parametrize(
    ("causes", "said"),
    [
        ({}, "2 offsets between its rows have no row, and no cause is proven: [5, 7)"),
        (
            {0: {HoleClass.CONTROL: OffsetRuns.of([(5, 6)])}},
            "1 offsets between its rows have no row, and no cause is proven: 6",
        ),
    ],
)
def test_an_offset_without_a_row_needs_a_proven_cause(
    causes: Mapping[int, Mapping[HoleClass, OffsetRuns]], said: str
) -> None:
    # Invariant 2 of `bare_batch`.
    batch = entered(causes)
    assert batch.manifest is None
    assert batch.plan is not None
    [reason] = batch.reasons
    assert said in reason


def test_rows_that_are_there_twice_keep_it_out() -> None:
    batch = entered({0: MARKERS}, OffsetRuns.of([(3, 4)]))
    assert batch.manifest is None
    assert "more than once" in batch.reasons[0]


@pytest.mark.parametrize(
    ("held", "is_repair"),
    [((0, 4), True), ((8, 20), True), ((10, 20), False), ((5, 7), False), ((0, 3), False)],
)
def test_it_is_a_repair_where_it_holds_rows_of_a_file_that_is_missing(
    held: tuple[int, int], is_repair: bool
) -> None:
    # Invariant 3 of `bare_batch`.
    first, until = held
    gone = a_file("gone.parquet", FileSlice(0, first, until - 1, until - first))
    old = a_manifest(files=(gone,))
    batch = replacing(entered({0: MARKERS}), [(old, gone)])
    assert batch.manifest
    replaced = (CommittedFile(old.plan.batch_id, gone.name),)
    assert batch.manifest.plan.replaces == (replaced if is_repair else ())


def test_its_log_is_the_one_on_record_at_its_places() -> None:
    # Invariant 4 of `bare_batch`.
    other = Life("cluster", "another")
    known = {(0, 1): LIFE, (1, 1): LIFE, (2, 1): other, (0, 2): other}
    assert lives_in([0, 1, 7], 1, known) == {LIFE}
    assert lives_in([0, 2], 1, known) == {LIFE, other}
    assert lives_in([7], 1, known) == set()
