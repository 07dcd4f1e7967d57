"""One table of rules, twice: in code, and told here by the rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.identities import BatchId
from tallystick.domain.rules.a3_log_cut import has_lost_unlanded
from tallystick.domain.rules.c3_rows_differ import place_of
from tallystick.domain.rules.closing import Heard, Payloads, ended_findings, ending_of
from tallystick.domain.rules.findings import FAILING_VERDICTS, FindingCode, Level
from tallystick.domain.rules.registry import RULES
from tallystick.domain.rules.rule import Ending, Rule
from tests.support.builders import (
    NOON,
    a_snapshot,
    an_account,
    bounds,
    by_partition,
)
from tests.support.told_by_rules import TOLD

LANDED = an_account(frontier=5, anchor_offset=4, last_seen_until=7)


def test_every_code_has_one_rule_in_the_order_of_the_codes() -> None:
    assert [rule.code for rule in RULES] == list(FindingCode)
    assert list(TOLD) == [code.value for code in FindingCode]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code.value)
def test_a_rule_says_what_the_table_says(rule: Rule) -> None:
    # Invariant 1 of `rule`.
    told = list(TOLD[rule.code.value])

    assert {each.code for each in told} == {rule.code}
    assert {each.verdict for each in told} == set(rule.verdicts)
    assert {each.level for each in told} == set(rule.levels)
    assert {each.name for each in told} == set(rule.names or [rule.name])
    assert all(each.cause.endswith(".") and len(each.next_step) > 20 for each in told)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code.value)
def test_two_levels_never_speak_of_one_finding(rule: Rule) -> None:
    """Each would put its own evidence in the other's place, and end what the other has found."""
    levels: dict[object, set[Level]] = {}
    for each in TOLD[rule.code.value]:
        levels.setdefault(each.key, set()).add(each.level)
    assert all(len(each) == 1 for each in levels.values())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code.value)
def test_whatever_is_told_has_an_ending_that_ends_it(rule: Rule) -> None:
    # Invariant 3 of `rule`.
    after = by_partition(replace(LANDED, ordinal=2, frontier=9))
    for each in TOLD[rule.code.value]:
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


@pytest.mark.parametrize("code", TOLD)
def test_every_finding_says_what_it_comes_from_in_words_of_its_own(code: str) -> None:
    words = {each.trouble for each in TOLD[code]}
    assert all(words), code
    assert not [each for each in words if "None" in each or "  " in each], words


def test_whatever_a_rule_says_fails_a_reconcile() -> None:
    for rule in RULES:
        assert set(rule.verdicts) <= FAILING_VERDICTS
