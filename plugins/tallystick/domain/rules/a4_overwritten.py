"""A4, overwritten."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

A4: Final = Rule(
    code=FindingCode.OVERWRITTEN,
    kind=RuleClass.LOSS,
    compares="last landed record, or end of the epoch in which the log was seen, against the log",
    endings={Level.L1: Ending.NEW_GENERATION},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when=(
        "the record expired or was compacted, and the epochs reach past it; an idle log that has"
        " expired"
    ),
    remedy="as A3; the old rows stay in the old generation",
    mending=Mending.NEW_GENERATION,
    is_cut=True,
    is_of_plans=True,
)
