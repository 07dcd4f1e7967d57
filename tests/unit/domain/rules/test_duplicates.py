"""B2, B3 and C2 as tables: what is landed or sent twice, and what was aborted and is landed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.domain.rows.payload import Payload
from tallystick.domain.rules.b2_landed_twice import HeldOffsets, shared_by_batches
from tallystick.domain.rules.b3_payload_twice import Place, payloads_twice
from tallystick.domain.rules.c2_aborted_landed import aborted_landed
from tallystick.domain.rules.findings import Finding
from tallystick.domain.verdicts import Verdict
from tests.support.builders import FEED, a_manifest, an_account

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


PLACE = Place("orders", "orders", 1, 0)


def sent(*rows: tuple[int, str, int]) -> list[Payload]:
    """Offset, content, and the second in which it was sent."""
    return [Payload(offset, second * 1000, content.encode()) for offset, content, second in rows]


PAYLOADS: list[tuple[str, list[Payload], Pairs]] = [
    ("all differ: no two are equal", sent((0, "a", 0), (1, "b", 0)), []),
    ("the same at once: the later one is named", sent((0, "a", 0), (1, "a", 0)), [(1, 2)]),
    ("at the horizon: the bound is included", sent((0, "a", 0), (1, "a", 60)), [(1, 2)]),
    ("past the horizon: a heartbeat is slower", sent((0, "a", 0), (1, "a", 61)), []),
    ("times run backwards: producers' clocks differ", sent((0, "a", 60), (1, "a", 0)), [(1, 2)]),
    (
        "a retried batch: offsets side by side are one run",
        sent((0, "a", 0), (1, "b", 0), (2, "a", 1), (3, "b", 1), (4, "c", 1)),
        [(2, 4)],
    ),
    (
        "a slow chain: each has one shortly before it",
        sent((0, "a", 0), (1, "a", 50), (2, "a", 100)),
        [(1, 3)],
    ),
    (
        "again after a pause: the pause was longer than the horizon",
        sent((0, "a", 0), (1, "a", 100), (2, "a", 130)),
        [(2, 3)],
    ),
]


@pytest.mark.parametrize(
    ("payloads", "expected"), [pytest.param(*rest, id=name) for name, *rest in PAYLOADS]
)
def test_which_payloads_are_there_twice(payloads: list[Payload], expected: Pairs) -> None:
    found = payloads_twice(PLACE, payloads, timedelta(seconds=60))

    assert intervals(found) == expected
    assert {each.verdict for each in found} <= {Verdict.SUSPECTED}


def test_a_repeated_payload_names_its_first_pair() -> None:
    rows = sent((3, "a", 0), (5, "b", 0), (8, "a", 1), (9, "b", 1))
    (found,) = payloads_twice(PLACE, rows, timedelta(seconds=60))

    assert found.evidence["first"] == [3, 8]
    assert "offset 3 equals offset 8" in found.cause


MANIFEST = a_manifest()


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
