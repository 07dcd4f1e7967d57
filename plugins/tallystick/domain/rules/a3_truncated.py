"""A3, truncated."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

A3: Final = Rule(
    code=FindingCode.TRUNCATED,
    kind=RuleClass.LOSS,
    compares=(
        "same log, high watermark or end of the epoch in which it was seen, against what was"
        " readable"
    ),
    endings={Level.L1: Ending.NEW_GENERATION},
    verdicts=(Verdict.PROVEN_LOSS,),
    not_when="a high watermark that lags while the epochs show a whole log",
    remedy="the partition stops; a new generation on the operator's word",
    mending=Mending.NEW_GENERATION,
    is_cut=True,
    is_of_plans=True,
)
