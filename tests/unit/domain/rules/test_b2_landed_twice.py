"""B2, landed twice: what the offsets of committed files say, as a table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.b2_landed_twice import HeldOffsets, shared_by_batches
from tallystick.domain.rules.findings import Finding
from tallystick.domain.verdicts import Verdict
from tests.support.builders import FEED, an_account

Pairs = list[tuple[int, int]]


def held(batch: str, pairs: Pairs, doubled: Pairs | None = None) -> HeldOffsets:
    return HeldOffsets(
        batch, f"{batch}.parquet", OffsetRuns.of(pairs), OffsetRuns.of(doubled or [])
    )


def intervals(findings: tuple[Finding, ...]) -> Pairs:
    return [(each.from_offset or 0, each.until_offset or 0) for each in findings]


TWICE: list[tuple[str, list[HeldOffsets], Pairs]] = [
    ("one file: once is right", [held("a", [(0, 9)])], []),
    ("side by side: they touch", [held("a", [(0, 5)]), held("b", [(5, 9)])], []),
    ("woven: no offset is in both", [held("a", [(0, 1), (2, 3)]), held("b", [(1, 2)])], []),
    ("one offset: one is enough", [held("a", [(0, 6)]), held("b", [(5, 9)])], [(5, 6)]),
    ("a copy: every offset", [held("a", [(0, 9)]), held("b", [(0, 9)])], [(0, 9)]),
    ("within one file: two rows of one offset", [held("a", [(0, 9)], [(3, 4)])], [(3, 4)]),
    (
        "three files: an offset is named once, however often it is there",
        [held("a", [(0, 4)]), held("b", [(2, 6)]), held("c", [(3, 9)])],
        [(2, 6)],
    ),
    (
        "two places: each run is named",
        [held("a", [(0, 3), (7, 9)]), held("b", [(2, 8)])],
        [(2, 3), (7, 8)],
    ),
]


@pytest.mark.parametrize(
    ("files", "expected"), [pytest.param(*rest, id=name) for name, *rest in TWICE]
)
def test_what_is_landed_twice(files: list[HeldOffsets], expected: Pairs) -> None:
    found = shared_by_batches(FEED, an_account(), files)

    assert intervals(found) == expected
    assert {each.verdict for each in found} <= {Verdict.PROVEN_DUP}


def test_what_is_landed_twice_names_its_places() -> None:
    (found,) = shared_by_batches(
        FEED, an_account(), [held("b", [(0, 3)]), held("a", [(2, 5)]), held("c", [(6, 7)])]
    )

    assert found.evidence == {"places": ["a.parquet", "b.parquet"], "more_than_once_in": []}


@given(st.lists(st.lists(st.integers(0, 30), max_size=12, unique=True), max_size=4))
def test_landed_twice_is_what_counting_says(files: list[list[int]]) -> None:
    counted = [n for n in range(31) if sum(n in each for each in files) > 1]
    holding = [held(str(n), [(o, o + 1) for o in each]) for n, each in enumerate(files)]
    found = shared_by_batches(FEED, an_account(), holding)

    assert [n for a, b in intervals(found) for n in range(a, b)] == counted
