"""How a reconcile ends: neighbours one finding, or one verdict, apart."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from tallystick.domain.rules.a1_expired import A1
from tallystick.domain.rules.findings import FAILING_VERDICTS, Outcome, outcome_of
from tallystick.domain.rules.rule import Rule
from tallystick.domain.rules.u1_could_not_tell import U1
from tallystick.domain.rules.w1_loss_near import W1
from tallystick.domain.verdicts import Verdict

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
