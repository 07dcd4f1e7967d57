"""One table of rules, twice: in code, and told here by the rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.identities import BatchId
from tallystick.domain.logs.snapshot import BatchHead
from tallystick.domain.rows.scrub import ReadFile
from tallystick.domain.rows.second_read import Difference, SliceRead
from tallystick.domain.rules.a3_log_cut import has_lost_unlanded
from tallystick.domain.rules.a6_ledger_unsound import left_unread, skips_in_ledger
from tallystick.domain.rules.a8_committed_file_missing import in_doubt
from tallystick.domain.rules.a10_ledger_behind import ledger_behind, perhaps_landed
from tallystick.domain.rules.c3_rows_differ import ComparedSlice, differing_rows, place_of
from tallystick.domain.rules.closing import Heard, Payloads, ended_findings, ending_of
from tallystick.domain.rules.findings import FAILING_VERDICTS, Finding, FindingCode, Level
from tallystick.domain.rules.landed_files import missing_or_changed
from tallystick.domain.rules.n1_overdue import missed_reconcile
from tallystick.domain.rules.registry import RULES
from tallystick.domain.rules.rule import Ending, Rule
from tallystick.domain.rules.u1_could_not_tell import (
    could_not_compare,
    could_not_tell,
    unread_feeds,
)
from tests.support.builders import (
    FEED,
    NOON,
    TOPIC,
    a_range,
    a_snapshot,
    an_account,
    bounds,
    by_partition,
)
from tests.unit.domain.rules.test_what_makes_it_worse import (
    MANIFEST,
    ONE,
    WORSE,
    Told,
    of_log,
    read_in_full,
    record,
)

LANDED = an_account(frontier=5, anchor_offset=4, last_seen_until=7)

# What a rule says beside all that `WORSE` has it say.
ELSE: Final[Mapping[str, Told]] = {
    "A1": [*perhaps_landed(of_log(bounds(6, 9))), *of_log(bounds(0, 9), added=bounds(6, 9))],
    "A2": perhaps_landed(of_log(bounds(6, 9), head=BatchHead(5, 9, None, 1, None))),
    "A6": [
        *perhaps_landed(skips_in_ledger(FEED, LANDED, [a_range(0, 4)])),
        left_unread(FEED, LANDED, a_range(5, 7)),
    ],
    "A8": [
        *in_doubt(missing_or_changed(MANIFEST, "/d", {}), ["/s"], ["/e"]),
        *in_doubt(missing_or_changed(MANIFEST, "/d", {}), (), ["/e"]),
    ],
    "A10": ledger_behind(FEED, TOPIC, {}, {"/bare": ()}),
    "C1": read_in_full(now=StoredFile(ONE.length_bytes, ONE.checksum)),
    "C3": differing_rows(
        MANIFEST,
        MANIFEST.files,
        [
            ComparedSlice(
                SliceRead(a_range(0, 8), (), 0, 8), (Difference(3, record(3, b"v"), None),)
            )
        ],
    ),
    "N1": missed_reconcile(FEED, TOPIC, NOON - timedelta(days=3), timedelta(hours=1), NOON),
    "U1": [
        could_not_compare(FEED, TOPIC, "it is away."),
        could_not_tell(FEED, TOPIC, Level.L1, what="Kafka", reason="nobody answers.", seen_at=NOON),
        could_not_tell(FEED, TOPIC, Level.L2, what="HDFS", reason="in safe mode.", seen_at=NOON),
        *unread_feeds(FEED, TOPIC, {"/d/payments": "no permission."}),
        *read_in_full(ReadFile("one.parquet", failure="no DataNode")),
    ],
}


def told_by(rule: Rule) -> list[Finding]:
    """All that the rule can say, and nothing of the other rules."""
    code = rule.code.value
    worse = [each for pair in WORSE[code].values() for told in pair for each in told]
    return [each for each in [*worse, *ELSE.get(code, ())] if each.rule is rule]


def test_every_code_has_one_rule_in_the_order_of_the_codes() -> None:
    assert [rule.code for rule in RULES] == list(FindingCode)
    assert list(WORSE) == [code.value for code in FindingCode]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code.value)
def test_a_rule_says_what_the_table_says(rule: Rule) -> None:
    # Invariant 1 of `rule`.
    told = told_by(rule)

    assert {each.verdict for each in told} == set(rule.verdicts)
    assert {each.level for each in told} == set(rule.levels)
    assert {each.name for each in told} == set(rule.names or [rule.name])
    assert all(each.cause.endswith(".") and len(each.next_step) > 20 for each in told)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code.value)
def test_two_levels_never_speak_of_one_finding(rule: Rule) -> None:
    """Each would put its own evidence in the other's place, and end what the other has found."""
    levels: dict[object, set[Level]] = {}
    for each in told_by(rule):
        levels.setdefault(each.key, set()).add(each.level)
    assert all(len(each) == 1 for each in levels.values())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code.value)
def test_whatever_is_told_has_an_ending_that_ends_it(rule: Rule) -> None:
    # Invariant 3 of `rule`.
    after = by_partition(replace(LANDED, ordinal=2, frontier=9))
    for each in told_by(rule):
        named = {key: str(each.evidence[key]) for key in ("batch", "file") if key in each.evidence}
        clean = {BatchId(named["batch"]): True} if "batch" in named else {}
        look = Heard(
            NOON,
            a_snapshot({each.partition or 0: bounds(0, 9)}),
            storage=True,
            read_in_full=clean,
            offsets_read=clean,
            equal_again={place_of(each)},
            payloads=Payloads.COMPARED,
        )
        is_ended = bool(ended_findings({1: each}, (), look, after))
        match ending_of(each):
            case Ending.ACCEPTANCE:
                assert not is_ended
            case Ending.REPAIR:
                repaired = replace(
                    look, replaced={CommittedFile(BatchId(named["batch"]), named["file"])}
                )
                assert ended_findings({1: each}, (), repaired, after)
            case Ending.NEW_GENERATION:
                assert is_ended or has_lost_unlanded(each)
            case _:
                assert is_ended


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code.value)
def test_every_finding_says_what_it_comes_from_in_words_of_its_own(rule: Rule) -> None:
    words = {each.trouble for each in told_by(rule)}
    assert all(words)
    assert not [each for each in words if "None" in each or "  " in each], words


def test_whatever_a_rule_says_fails_a_reconcile() -> None:
    for rule in RULES:
        assert set(rule.verdicts) <= FAILING_VERDICTS
