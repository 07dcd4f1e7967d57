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


ABORTED: list[tuple[str, Pairs, Pairs, Pairs]] = [
    ("none aborted: nothing to see", [(0, 9)], [], []),
    ("aborted and left out: as it should be", [(0, 3), (6, 9)], [(3, 6)], []),
    ("aborted and landed: each of them", [(0, 9)], [(3, 6)], [(3, 6)]),
    ("in part: those that are there", [(0, 4), (6, 9)], [(3, 6)], [(3, 4)]),
    ("two transactions: each run is named", [(0, 9)], [(1, 2), (5, 6)], [(1, 2), (5, 6)]),
    ("behind what was landed: not landed yet", [(0, 9)], [(9, 12)], []),
]


@pytest.mark.parametrize(
    ("landed", "aborted", "expected"), [pytest.param(*rest, id=name) for name, *rest in ABORTED]
)
def test_which_aborted_rows_are_landed(landed: Pairs, aborted: Pairs, expected: Pairs) -> None:
    found = aborted_landed(
        MANIFEST.plan, "one.parquet", 0, OffsetRuns.of(landed), OffsetRuns.of(aborted)
    )

    assert intervals(found) == expected
