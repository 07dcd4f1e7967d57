"""A6, the ledger against itself, as a table: neighbours differ in one fact."""

from __future__ import annotations

import pytest

from tallystick.domain.rules.a6_ledger_unsound import overlaps_in_ledger, skips_in_ledger
from tallystick.domain.rules.findings import Finding
from tests.support.builders import FEED, a_range, an_account

Pairs = list[tuple[int, int]]


def told(findings: tuple[Finding, ...]) -> str:
    return " ".join(
        f"{each.name.removeprefix('offsets ')} [{each.from_offset}, {each.until_offset})"
        for each in findings
    )


ROWS: list[tuple[str, int, Pairs, str]] = [
    ("nothing yet: the frontier is where it began", 0, [], ""),
    ("all of it: ranges that touch neither overlap nor skip", 9, [(0, 5), (5, 9)], ""),
    ("in any order: order says nothing", 9, [(5, 9), (0, 5)], ""),
    ("one offset short: nobody will ask for it again", 9, [(0, 4), (5, 9)], "skipped [4, 5)"),
    ("short at the start: the first offset is the feed's too", 9, [(1, 9)], "skipped [0, 1)"),
    ("short at the end: the frontier says more than the ranges", 9, [(0, 8)], "skipped [8, 9)"),
    ("two skips: each is named", 9, [(2, 3), (5, 9)], "skipped [0, 2) skipped [3, 5)"),
    ("all skipped: not one range", 9, [], "skipped [0, 9)"),
    ("a gap beyond: the next plan asks for it", 5, [(0, 5), (7, 9)], ""),
    ("one offset twice: one is enough", 9, [(0, 6), (5, 9)], "overlap [5, 6)"),
    ("a range twice: two committers, the same range", 9, [(0, 9), (0, 9)], "overlap [0, 9)"),
    ("one inside: the larger one hides nothing", 9, [(0, 9), (3, 4)], "overlap [3, 4)"),
    ("three times: an offset is named once", 9, [(0, 9), (3, 5), (4, 6)], "overlap [3, 6)"),
    ("twice beyond: an overlap counts everywhere", 5, [(0, 5), (7, 9), (8, 10)], "overlap [8, 9)"),
    (
        "nets to the right sum: a count would see nine offsets, and be content",
        9,
        [(0, 4), (3, 8)],
        "overlap [3, 4) skipped [8, 9)",
    ),
]


@pytest.mark.parametrize(
    ("frontier", "settled", "expected"), [pytest.param(*rest, id=name) for name, *rest in ROWS]
)
def test_what_the_ledger_says_of_itself(frontier: int, settled: Pairs, expected: str) -> None:
    account, ranges = an_account(frontier=frontier), [a_range(*each) for each in settled]
    found = overlaps_in_ledger(FEED, account, ranges) + skips_in_ledger(FEED, account, ranges)

    assert told(found) == expected


def test_a_feed_answers_for_nothing_before_its_first_offset() -> None:
    account = an_account(first_offset=4, frontier=9)

    assert skips_in_ledger(FEED, account, [a_range(4, 9)]) == ()
    assert told(skips_in_ledger(FEED, account, [a_range(5, 9)])) == "skipped [4, 5)"
