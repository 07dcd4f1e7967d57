"""The ledger against itself, as tables: neighbours differ in one fact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.batches.states import Verdict
from tallystick.domain.rules.a6_offsets_skipped import skips_in_ledger
from tallystick.domain.rules.a7_short_read import is_over, short_read, standing_short_reads
from tallystick.domain.rules.b1_ledger_overlap import overlaps_in_ledger
from tallystick.domain.rules.findings import Finding, FindingCode, Level
from tallystick.domain.rules.registry import RULE_OF
from tests.support.builders import BATCH, FEED, a_batch, a_range, an_account, by_partition, planned

Pairs = list[tuple[int, int]]


def told(findings: tuple[Finding, ...]) -> str:
    return " ".join(
        f"{each.code.value} [{each.from_offset}, {each.until_offset})" for each in findings
    )


ROWS: list[tuple[str, int, Pairs, str, str]] = [
    ("nothing yet", 0, [], "", "the frontier is where it began"),
    ("all of it", 9, [(0, 5), (5, 9)], "", "ranges that touch neither overlap nor skip"),
    ("in any order", 9, [(5, 9), (0, 5)], "", "order says nothing"),
    ("one offset short", 9, [(0, 4), (5, 9)], "A6 [4, 5)", "nobody will ask for it again"),
    ("short at the start", 9, [(1, 9)], "A6 [0, 1)", "the first offset is the feed's too"),
    ("short at the end", 9, [(0, 8)], "A6 [8, 9)", "the frontier says more than the ranges"),
    ("two skips", 9, [(2, 3), (5, 9)], "A6 [0, 2) A6 [3, 5)", "each is named"),
    ("all skipped", 9, [], "A6 [0, 9)", "not one range"),
    ("a gap beyond", 5, [(0, 5), (7, 9)], "", "the next plan asks for it"),
    ("one offset twice", 9, [(0, 6), (5, 9)], "B1 [5, 6)", "one is enough"),
    ("a range twice", 9, [(0, 9), (0, 9)], "B1 [0, 9)", "two committers, the same range"),
    ("one inside", 9, [(0, 9), (3, 4)], "B1 [3, 4)", "the larger one hides nothing"),
    ("three times", 9, [(0, 9), (3, 5), (4, 6)], "B1 [3, 6)", "an offset is named once"),
    ("twice beyond", 5, [(0, 5), (7, 9), (8, 10)], "B1 [8, 9)", "an overlap counts everywhere"),
    (
        "nets to the right sum",
        9,
        [(0, 4), (3, 8)],
        "B1 [3, 4) A6 [8, 9)",
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
    assert told(skips_in_ledger(FEED, account, [a_range(5, 9)])) == "A6 [4, 5)"


SHORT = short_read(a_batch(planned(5, 9)), a_range(5, 8))
EXPIRED = replace(SHORT, rule=RULE_OF[FindingCode.EXPIRED], level=Level.L1)


def test_a_short_read_is_not_lost_yet() -> None:
    assert (SHORT.code, SHORT.verdict, SHORT.level) == (
        FindingCode.SHORT_READ,
        Verdict.UNKNOWN,
        Level.L0,
    )
    assert SHORT.evidence == {"batch": BATCH}


@pytest.mark.parametrize(
    ("recorded", "frontier", "ordinal", "stands"),
    [
        pytest.param(SHORT, 5, 1, True, id="nothing has changed"),
        pytest.param(SHORT, 7, 1, True, id="landed in part"),
        pytest.param(SHORT, 8, 1, False, id="landed since"),
        pytest.param(SHORT, 5, 2, False, id="the log is another one"),
        pytest.param(replace(SHORT, partition=1), 5, 1, False, id="nobody knows the partition"),
        pytest.param(
            replace(SHORT, rule=RULE_OF[FindingCode.EXPIRED], level=Level.L1),
            5,
            1,
            False,
            id="another code",
        ),
    ],
)
def test_a_short_read_stands_until_its_offsets_are_accounted_for(
    recorded: Finding, frontier: int, ordinal: int, stands: bool
) -> None:
    account = an_account(frontier=frontier, ordinal=ordinal)

    assert bool(standing_short_reads(by_partition(account), [recorded], ())) is stands


def test_only_short_reads_are_over_by_being_landed() -> None:
    landed = by_partition(an_account(frontier=9))

    assert is_over(landed, SHORT, ())
    assert not is_over(landed, EXPIRED, ())
    assert not is_over(landed, replace(SHORT, partition=None), ())


def test_a_short_read_of_a_repair_is_over_with_the_repair() -> None:
    """Its offsets lie below the frontier from the first."""
    for account in (an_account(frontier=9), an_account(frontier=9, ordinal=2)):
        assert not is_over(by_partition(account), SHORT, {BATCH})
        assert is_over(by_partition(account), SHORT, {"another"})
