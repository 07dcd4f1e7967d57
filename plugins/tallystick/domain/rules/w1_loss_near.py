"""W1, loss near."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

W1: Final = Rule(
    code=FindingCode.LOSS_NEAR,
    kind=RuleClass.WARNING,
    compares="age and size of what is unread against the topic's retention",
    endings={Level.L1: Ending.BROKER},
    verdicts=(Verdict.SUSPECTED,),
    not_when="nothing is unread; more than half of the retention is left",
    remedy="land it now, or lengthen the retention first",
    mending=Mending.NOTHING,
    grows=True,
)
