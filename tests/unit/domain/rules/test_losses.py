"""A6, A7 and A10: the ledger against itself, short reads, batches that the ledger does not know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.batches.stored_file import UnknownFile
from tallystick.domain.rules.a6_ledger_unsound import overlaps_in_ledger, skips_in_ledger
from tallystick.domain.rules.a7_short_read import short_read, standing_short_reads
from tallystick.domain.rules.a10_ledger_behind import ledger_behind
from tallystick.domain.rules.findings import Finding, FindingCode, Level
from tallystick.domain.rules.registry import RULE_OF
from tallystick.domain.rules.waivers import evidence_digest
from tallystick.domain.verdicts import Verdict
from tests.support.builders import (
    BATCH,
    FEED,
    TOPIC,
    a_batch,
    a_range,
    an_account,
    by_partition,
    planned,
)

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


SHORT = short_read(a_batch(planned(5, 9)), a_range(5, 8))
EXPIRED = replace(SHORT, rule=RULE_OF[FindingCode.EXPIRED], name="", level=Level.L1)


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
            replace(SHORT, rule=RULE_OF[FindingCode.EXPIRED], name="", level=Level.L1),
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

    nowhere = replace(SHORT, partition=None)
    assert standing_short_reads(landed, [SHORT, EXPIRED, nowhere], ()) == (nowhere,)


def test_a_short_read_of_a_repair_is_over_with_the_repair() -> None:
    """Its offsets lie below the frontier from the first."""
    for account in (an_account(frontier=9), an_account(frontier=9, ordinal=2)):
        assert standing_short_reads(by_partition(account), [SHORT], {BATCH}) == (SHORT,)
        assert standing_short_reads(by_partition(account), [SHORT], {"another"}) == ()


def test_a_commit_that_the_ledger_does_not_know_stops_landing() -> None:
    (found,) = ledger_behind(FEED, TOPIC, {"/landing/orders/gen=1/batch=1": ()}, {})

    assert (found.code, found.verdict) == (FindingCode.LEDGER_BEHIND, Verdict.UNKNOWN)
    assert found.next_step.startswith("Nothing is landed until this is mended")


def test_a_directory_without_a_manifest_stops_landing_and_says_the_way_in() -> None:
    one, other = ledger_behind(FEED, TOPIC, {"/landing/one": ()}, {"/landing/other": ()})

    assert (one.subject, other.subject) == ("/landing/one", "/landing/other")
    assert one.key != other.key
    assert (one.name, one.subject) == ("unknown batch", "/landing/one")
    assert (other.name, other.subject) == ("no manifest", "/landing/other")
    assert "--without-manifest" in other.next_step


@pytest.mark.parametrize(
    "files",
    [
        [],
        [UnknownFile("one", 5, 1), UnknownFile("two", 5, 1)],
        [UnknownFile("one", 6, 1)],
        [UnknownFile("one", 5, 2)],
        [UnknownFile("two", 5, 1)],
    ],
)
def test_a_directory_that_the_ledger_does_not_know_is_told_with_its_files(
    files: list[UnknownFile],
) -> None:
    was, now = {"/d": [UnknownFile("one", 5, 1)]}, {"/d": files}
    for old, new in zip(
        ledger_behind(FEED, TOPIC, was, was), ledger_behind(FEED, TOPIC, now, now), strict=True
    ):
        assert old.key == new.key
        assert evidence_digest(old.evidence) != evidence_digest(new.evidence)
