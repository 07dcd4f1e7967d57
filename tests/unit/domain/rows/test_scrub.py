"""What a scrub is told, what it says, and how offsets are compared on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.fingerprint import EMPTY, Fingerprint
from tallystick.domain.rows.scrub import (
    MOST_RUNS,
    NOTHING,
    BoundedRuns,
    ExpectedSlice,
    ReadFile,
    ReadSlice,
    ScrubFile,
    ScrubPlan,
    ScrubResult,
    compared,
    is_proven_by_sums,
)

HOLEY = ExpectedSlice(2, 10, 19, OffsetRuns.of([(12, 14)]))
DENSE = ExpectedSlice(0, 10, 19, OffsetRuns())
KNOWN = ExpectedSlice(4, 2**40, 2**40, OffsetRuns(), Fingerprint.of_row(2**40, 2**128 - 1))


def runs(*offsets: int) -> OffsetRuns:
    return OffsetRuns.of((each, each + 1) for each in offsets)


def taken(*offsets: int) -> Fingerprint:
    return sum((Fingerprint.of_row(each, each) for each in offsets), EMPTY)


def test_a_plan_and_a_result_survive_their_text() -> None:
    plan = ScrubPlan("s", (ScrubFile("a", "hdfs://a", 7, (HOLEY, DENSE, KNOWN)),), "hdfs://out", 2)
    slice_ = ReadSlice(0, taken(2**40, 5), missing=BoundedRuns.of(runs(1, 2, 9)))
    result = ScrubResult("s", (ReadFile("a", (slice_,)), ReadFile("b", (), "gone", True)))

    assert ScrubPlan.from_json(plan.to_json()) == plan
    assert ScrubResult.from_json(result.to_json()) == result


@pytest.mark.parametrize("text", ["{}", '{"format": "x"}', "[]", "no json"])
def test_another_text_is_no_result(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - JSON's own, or ours
        ScrubResult.from_json(text)


def test_another_text_is_no_plan() -> None:
    with pytest.raises(ValueError, match="no ScrubPlan: format"):
        ScrubPlan.from_json("{}")


def test_no_file_hides_another_of_its_name() -> None:
    files = tuple(ScrubFile("a", f"hdfs://{each}/a", 7, (DENSE,)) for each in "xy")
    with pytest.raises(ValueError, match="two files of a scrub have one name"):
        ScrubPlan("s", files, "hdfs://out", 2)


def test_a_slice_must_hold_what_is_no_hole() -> None:
    assert list(HOLEY.offsets) == [(10, 12), (14, 20)]
    assert (HOLEY.record_count, DENSE.record_count) == (8, 10)


@pytest.mark.parametrize(
    ("offsets", "distinct", "proven"),
    [
        (range(10, 20), 10, True),
        ([*range(10, 19), 18], 9, False),  # doubled, missing
        (range(10, 19), 9, False),
        (range(11, 21), 10, False),
        ([*range(10, 20), 15], 10, False),
        ([10, 10, 19], 10, False),
    ],
)
def test_so_many_different_offsets_fill_the_span(
    offsets: list[int], distinct: int, proven: bool
) -> None:
    assert is_proven_by_sums(DENSE, taken(*offsets), distinct) == proven


def test_counts_prove_nothing_where_there_are_holes_or_nothing_was_committed() -> None:
    found = taken(10, 11, *range(14, 20))
    assert not is_proven_by_sums(HOLEY, found, 8)
    assert not is_proven_by_sums(None, found, 8)


@pytest.mark.parametrize("expected", [HOLEY, DENSE])
def test_rows_of_which_the_fingerprint_is_on_record_have_its_offsets(
    expected: ExpectedSlice,
) -> None:
    offsets = [each for first, until in expected.offsets for each in range(first, until)]
    found = sum((Fingerprint.of_row(each, 2**96 + each) for each in offsets), EMPTY)
    on_record = replace(expected, fingerprint=found)
    assert is_proven_by_sums(on_record, found, 0)
    for other in (EMPTY, replace(found, hash_sums=(8, 1)), replace(found, record_count=99)):
        assert not is_proven_by_sums(on_record, other, 0)


@pytest.mark.parametrize(
    "other",
    [(10, 11, *range(14, 19)), (10, 11, 13, *range(15, 20)), (9, 11, *range(14, 20)), ()],
    ids=["fewer", "one in place of another", "from another one on", "none"],
)
def test_a_record_of_other_offsets_than_the_committed_ones_proves_nothing(
    other: Sequence[int],
) -> None:
    found = taken(*other)
    on_record = replace(HOLEY, fingerprint=found)
    assert on_record.known is None
    assert not is_proven_by_sums(on_record, found, 0)


@pytest.mark.parametrize(
    ("expected", "present", "doubled", "missing", "foreign"),
    [
        (HOLEY, [10, 11, *range(14, 20)], [], [], []),
        (HOLEY, [10, 11, *range(14, 19)], [], [19], []),
        (HOLEY, [*range(10, 13), *range(14, 20)], [], [], [12]),
        (HOLEY, [10, 11, *range(14, 20)], [11, 15], [], []),
        (HOLEY, [*range(10, 13), *range(14, 20)], [12], [], []),  # told once: as doubled
        (None, [1, 2], [], [], [1, 2]),
        (DENSE, [], [], range(10, 20), []),
    ],
)
def test_offsets_are_compared_one_by_one(
    expected: ExpectedSlice | None,
    present: list[int],
    doubled: list[int],
    missing: list[int],
    foreign: list[int],
) -> None:
    read = compared(expected, 2, EMPTY, present=runs(*present), doubled=runs(*doubled))
    assert read.missing == BoundedRuns.of(runs(*missing))
    assert read.doubled == BoundedRuns.of(runs(*doubled))
    assert read.foreign == BoundedRuns.of(runs(*foreign))
    assert read.has_its_offsets == (not (missing or doubled or foreign))


def test_the_first_runs_are_named_and_all_are_counted() -> None:
    many = BoundedRuns.of(runs(*range(0, 4 * MOST_RUNS, 2)))
    assert (many.count, many.run_count, len(many.runs)) == (200, 200, MOST_RUNS)
    assert (many.first_offset, many.last_offset) == (0, 398)
    assert not many.are_all_named
    assert BoundedRuns.of(runs(3)).are_all_named
    assert not NOTHING
