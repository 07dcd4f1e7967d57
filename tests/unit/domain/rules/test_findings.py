"""A finding says in one line where, what and what next."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from itertools import product

import pytest

from tallystick.domain.rules.findings import FAILING_VERDICTS, Finding, FindingCode, Level
from tallystick.domain.rules.registry import RULE_OF, RULES
from tallystick.domain.rules.rule import Rule
from tallystick.domain.verdicts import Verdict
from tests.support.builders import a_finding

LOST = a_finding(
    "A1", partition=3, from_offset=5, until_offset=8, cause="gone.", next_step="Tell the producers."
)


@pytest.mark.parametrize(
    ("finding", "place"),
    [
        pytest.param(LOST, "orders-3 [5, 8)", id="an interval"),
        pytest.param(replace(LOST, until_offset=None), "orders-3", id="half an interval is none"),
        pytest.param(replace(LOST, from_offset=None), "orders-3", id="nor the other half"),
        pytest.param(
            replace(LOST, partition=None, from_offset=None, until_offset=None),
            "orders",
            id="a whole topic",
        ),
    ],
)
def test_a_finding_reads_as_one_line(finding: Finding, place: str) -> None:
    assert str(finding) == f"{place} A1 PROVEN_LOSS: gone. Tell the producers."


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code.value)
def test_only_what_its_rule_may_say_can_be_found(rule: Rule) -> None:
    # Invariant 1 of `findings`.
    for level, verdict in product(Level, Verdict):
        may_be = level in rule.endings and verdict in (*rule.verdicts, Verdict.WAIVED)
        with nullcontext() if may_be else pytest.raises(ValueError, match="is never told as"):
            replace(LOST, rule=rule, name=next(iter(rule.names), ""), level=level, verdict=verdict)


def test_a_finding_has_one_of_the_names_of_its_rule() -> None:
    rule = RULE_OF[FindingCode.LOG_CUT]
    truncated, overwritten = (replace(LOST, rule=rule, name=each) for each in rule.names[:2])

    assert LOST.name == "expired"
    assert truncated.key != overwritten.key
    for wrong in ("", "expired"):
        with pytest.raises(ValueError, match=r"is never told as|too many values"):
            replace(LOST, rule=rule, name=wrong)


def test_everything_fails_that_is_neither_harmless_nor_accepted() -> None:
    accepted = {Verdict.PROVEN_OK, Verdict.WAIVED}

    assert set(Verdict) - accepted == FAILING_VERDICTS


@pytest.mark.parametrize(
    ("change", "is_another"),
    [
        ({"rule": RULE_OF[FindingCode.TOPIC_RECREATED], "name": ""}, True),
        ({"topic": "others"}, True),
        ({"generation": 2}, True),
        ({"partition": 4}, True),
        ({"from_offset": 6}, True),
        ({"until_offset": 9}, True),
        ({"subject": "/landing/orders/copy.parquet"}, True),
        ({"verdict": Verdict.UNKNOWN}, False),
        ({"cause": "in other words."}, False),
        ({"evidence": {"log_start_offset": 8}}, False),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else str(each),
)
def test_a_key_says_what_a_finding_is_about_and_not_what_is_said(
    change: dict[str, object], is_another: bool
) -> None:
    assert (replace(LOST, **change).key != LOST.key) is is_another  # type: ignore[arg-type]


@pytest.mark.parametrize("code", ["N1", "N2", "W1", "Z5"])
def test_a_state_that_lasts_is_the_same_one_while_the_log_grows(code: str) -> None:
    rule = RULE_OF[FindingCode(code)]
    [verdict] = rule.verdicts
    lasting = replace(LOST, rule=rule, name=next(iter(rule.names), ""), verdict=verdict)
    assert replace(lasting, until_offset=9).key == lasting.key
    assert replace(lasting, from_offset=6).key != lasting.key
