"""Z5, no progress."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

Z5: Final = Rule(
    code=FindingCode.NO_PROGRESS,
    kind=RuleClass.STALLED,
    compares="the window's cut against the first record after now",
    endings={Level.L1: Ending.LANDING},
    verdicts=(Verdict.UNKNOWN,),
    not_when="late or unordered times; no record that late; nothing behind it",
    remedy="plan.until: now; correct the producer's clock",
    mending=Mending.NOTHING,
    grows=True,
    is_of_plans=True,
)
