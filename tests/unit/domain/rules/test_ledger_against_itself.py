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


ROWS: list[tuple[str, int, Pairs, str, str]] = [
    ("nothing yet", 0, [], "", "the frontier is where it began"),
    ("all of it", 9, [(0, 5), (5, 9)], "", "ranges that touch neither overlap nor skip"),
    ("in any order", 9, [(5, 9), (0, 5)], "", "order says nothing"),
    (
        "one offset short",
        9,
        [(0, 4), (5, 9)],
        "skipped [4, 5)",
        "nobody will ask for it again",
    ),
    (
        "short at the start",
        9,
        [(1, 9)],
        "skipped [0, 1)",
        "the first offset is the feed's too",
    ),
    (
        "short at the end",
        9,
        [(0, 8)],
        "skipped [8, 9)",
        "the frontier says more than the ranges",
    ),
    (
        "two skips",
        9,
        [(2, 3), (5, 9)],
        "skipped [0, 2) skipped [3, 5)",
        "each is named",
    ),
    ("all skipped", 9, [], "skipped [0, 9)", "not one range"),
    ("a gap beyond", 5, [(0, 5), (7, 9)], "", "the next plan asks for it"),
    ("one offset twice", 9, [(0, 6), (5, 9)], "overlap [5, 6)", "one is enough"),
    ("a range twice", 9, [(0, 9), (0, 9)], "overlap [0, 9)", "two committers, the same range"),
    ("one inside", 9, [(0, 9), (3, 4)], "overlap [3, 4)", "the larger one hides nothing"),
    ("three times", 9, [(0, 9), (3, 5), (4, 6)], "overlap [3, 6)", "an offset is named once"),
    (
        "twice beyond",
        5,
        [(0, 5), (7, 9), (8, 10)],
        "overlap [8, 9)",
        "an overlap counts everywhere",
    ),
    (
        "nets to the right sum",
        9,
        [(0, 4), (3, 8)],
        "overlap [3, 4) skipped [8, 9)",
        "a count would see nine offsets, and be content",
    ),
]


@pytest.mark.parametrize(
    ("frontier", "settled", "expected", "why"),
    [pytest.param(*rest, id=name) for name, *rest in ROWS],
)
def test_what_the_ledger_says_of_itself(
    frontier: int, settled: Pairs, expected: str, why: str
) -> None:
    account, ranges = an_account(frontier=frontier), [a_range(*each) for each in settled]
    found = overlaps_in_ledger(FEED, account, ranges) + skips_in_ledger(FEED, account, ranges)

    assert told(found) == expected, why


def test_a_feed_answers_for_nothing_before_its_first_offset() -> None:
    account = an_account(first_offset=4, frontier=9)

    assert skips_in_ledger(FEED, account, [a_range(4, 9)]) == ()
    assert told(skips_in_ledger(FEED, account, [a_range(5, 9)])) == "skipped [4, 5)"
