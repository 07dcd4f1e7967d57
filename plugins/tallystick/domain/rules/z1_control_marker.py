"""Z1, control marker."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

Z1: Final = Rule(
    code=FindingCode.CONTROL_MARKER,
    kind=RuleClass.BENIGN,
    compares="holes at control batches",
    endings={Level.L0: Ending.NEVER_RECORDED},
    verdicts=(Verdict.BENIGN_HOLE,),
    not_when="-",
    remedy="none: each transaction ends with a marker",
    mending=Mending.NOTHING,
)
