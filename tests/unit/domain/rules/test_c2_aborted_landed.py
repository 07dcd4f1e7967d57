"""C2, aborted landed: which rows of aborted transactions are landed, as a table."""

from __future__ import annotations

import pytest

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rules.c2_aborted_landed import aborted_landed
from tallystick.domain.rules.findings import Finding
from tests.support.builders import a_manifest

MANIFEST = a_manifest()
Pairs = list[tuple[int, int]]


def intervals(findings: tuple[Finding, ...]) -> Pairs:
    return [(each.from_offset or 0, each.until_offset or 0) for each in findings]


ABORTED: list[tuple[str, Pairs, Pairs, Pairs, str]] = [
    ("none aborted", [(0, 9)], [], [], "nothing to see"),
    ("aborted and left out", [(0, 3), (6, 9)], [(3, 6)], [], "as it should be"),
    ("aborted and landed", [(0, 9)], [(3, 6)], [(3, 6)], "each of them"),
    ("in part", [(0, 4), (6, 9)], [(3, 6)], [(3, 4)], "those that are there"),
    ("two transactions", [(0, 9)], [(1, 2), (5, 6)], [(1, 2), (5, 6)], "each run is named"),
    ("behind what was landed", [(0, 9)], [(9, 12)], [], "not landed yet"),
]


@pytest.mark.parametrize(
    ("landed", "aborted", "expected", "why"),
    [pytest.param(*rest, id=name) for name, *rest in ABORTED],
)
def test_which_aborted_rows_are_landed(
    landed: Pairs, aborted: Pairs, expected: Pairs, why: str
) -> None:
    found = aborted_landed(
        MANIFEST.plan, "one.parquet", 0, OffsetRuns.of(landed), OffsetRuns.of(aborted)
    )

    assert intervals(found) == expected, why
