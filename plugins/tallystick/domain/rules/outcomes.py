"""How a reconcile ends, by the command line and by a feed's DAG alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum

from tallystick.domain.rules.findings import FAILING_VERDICTS
from tallystick.domain.rules.rule import Rule, Trait
from tallystick.domain.verdicts import Verdict


class Outcome(Enum):
    """What is made of all that a reconcile has found."""

    CLEAN = "nothing to fail on"
    SILENCE = "a witness did not answer, and nothing is known to be wrong: that may pass"
    TROUBLE = "something is wrong, whoever was silent"


def outcome_of(
    found: Iterable[tuple[Rule, Verdict]], fail_on: Collection[str] = FAILING_VERDICTS
) -> Outcome:
    """Of the findings, each with what is said of it now; `fail_on` are the verdicts that count."""
    failing = [rule for rule, verdict in found if verdict in fail_on]
    if not failing:
        return Outcome.CLEAN
    is_silence = all(rule.has(Trait.SILENCE) for rule in failing)
    return Outcome.SILENCE if is_silence else Outcome.TROUBLE
