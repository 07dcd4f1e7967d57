"""A finding in one line; evidence that is read as it was written; how a reconcile ends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from typing import Protocol, Self

import pytest

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.identities import BatchId
from tallystick.domain.rules import evidence
from tallystick.domain.rules.a1_expired import A1
from tallystick.domain.rules.a3_log_cut import CutEvidence
from tallystick.domain.rules.a8_committed_file_missing import LostRows
from tallystick.domain.rules.b2_landed_twice import SharedWith
from tallystick.domain.rules.findings import (
    FAILING_VERDICTS,
    Finding,
    FindingCode,
    Level,
    Outcome,
    outcome_of,
)
from tallystick.domain.rules.registry import RULE_OF, RULES
from tallystick.domain.rules.rule import Rule
from tallystick.domain.rules.u1_could_not_tell import U1
from tallystick.domain.rules.w1_loss_near import W1
from tallystick.domain.verdicts import Verdict
from tests.support.builders import BATCH, a_finding

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
        ({"rule": RULE_OF[FindingCode.PURGED], "name": ""}, True),
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


class Typed(Protocol):
    def as_json(self) -> dict[str, object]: ...

    @classmethod
    def of(cls, found: Finding) -> Self | None: ...


def with_evidence(code: str, level: Level, told: dict[str, object]) -> Finding:
    return a_finding(code, level, evidence=told)


WRITTEN: list[tuple[str, Level, Typed]] = [
    ("A3", Level.L1, CutEvidence("then", 5)),
    ("A3", Level.L1, CutEvidence("then", 5, 4, ("/kept/a", "/kept/b"))),
    ("A8", Level.L1, LostRows(BATCH)),
    ("A8", Level.L1, LostRows(BATCH, ("/kept/a",))),
    ("B2", Level.L2, SharedWith("/d/a.parquet")),
    ("B2", Level.L2, SharedWith("/d", BatchId("0" * 16))),
]


@pytest.mark.parametrize(("code", "level", "written"), WRITTEN)
def test_evidence_is_read_as_it_was_written(code: str, level: Level, written: Typed) -> None:
    assert type(written).of(with_evidence(code, level, written.as_json())) == written


@pytest.mark.parametrize(("code", "level", "written"), WRITTEN)
def test_evidence_is_read_from_its_own_rule_only(code: str, level: Level, written: Typed) -> None:
    assert type(written).of(with_evidence("C1", Level.L2, written.as_json())) is None


@pytest.mark.parametrize(
    ("code", "level", "kind"),
    [("A3", Level.L1, CutEvidence), ("A8", Level.L2, LostRows), ("B2", Level.L2, SharedWith)],
)
def test_a_finding_of_the_rule_may_carry_none_of_it(
    code: str, level: Level, kind: type[Typed]
) -> None:
    assert kind.of(with_evidence(code, level, {})) is None


def test_what_several_rules_carry_is_read_as_it_was_written() -> None:
    assert evidence.batch_in(evidence.of_batch(BATCH)) == BATCH
    assert evidence.file_in(evidence.of_file(BATCH, "a")) == CommittedFile(BATCH, "a")
    assert evidence.file_in(evidence.of_file(BATCH, None)) is None
    assert evidence.kept_in(evidence.of_kept(["/a", "/b"])) == ("/a", "/b")
    assert (evidence.of_kept([]), evidence.kept_in({})) == ({}, ())
    assert evidence.topic_id_in(evidence.of_topic("t")) == "t"
    assert (evidence.batch_in({}), evidence.topic_id_in({}), evidence.path_in({})) == (None,) * 3


def test_two_ways_not_to_have_been_asked_are_told_apart() -> None:
    of_path = evidence.of_path_not_asked("/d")
    of_attempts = evidence.of_held({"/s/b/1": "no answer."})
    assert evidence.path_not_asked(of_path) == "/d"
    assert evidence.held_in(of_attempts) == {"/s/b/1": "no answer."}
    assert evidence.path_not_asked(of_attempts) is None
    assert evidence.held_in(of_path) is None


LOSS = (A1, Verdict.PROVEN_LOSS)
ACCEPTED = (A1, Verdict.WAIVED)
WARNING = (W1, Verdict.SUSPECTED)
SILENCE = (U1, Verdict.UNKNOWN)
PROVEN = frozenset({"PROVEN_DUP", "PROVEN_LOSS"})


@pytest.mark.parametrize(
    ("found", "fail_on", "outcome"),
    [
        ([], FAILING_VERDICTS, Outcome.CLEAN),
        ([ACCEPTED], FAILING_VERDICTS, Outcome.CLEAN),
        ([SILENCE], FAILING_VERDICTS, Outcome.SILENCE),
        ([SILENCE, ACCEPTED], FAILING_VERDICTS, Outcome.SILENCE),
        ([SILENCE, LOSS], FAILING_VERDICTS, Outcome.TROUBLE),
        ([SILENCE, WARNING], FAILING_VERDICTS, Outcome.TROUBLE),
        ([LOSS], FAILING_VERDICTS, Outcome.TROUBLE),
        ([LOSS], (), Outcome.CLEAN),
        ([SILENCE], PROVEN, Outcome.CLEAN),
        ([WARNING], PROVEN, Outcome.CLEAN),
        ([SILENCE, LOSS], PROVEN, Outcome.TROUBLE),
        ([SILENCE, WARNING], {"UNKNOWN"}, Outcome.SILENCE),
    ],
)
def test_a_reconcile_ends_as_the_worst_that_counts_says(
    found: Sequence[tuple[Rule, Verdict]], fail_on: Collection[str], outcome: Outcome
) -> None:
    assert outcome_of(found, fail_on) is outcome
