"""Z4, nothing there."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

Z4: Final = Rule(
    code=FindingCode.NOTHING_THERE,
    kind=RuleClass.BENIGN,
    compares="log start equals high watermark",
    endings={Level.L1: Ending.NEVER_RECORDED},
    verdicts=(Verdict.BENIGN_HOLE,),
    not_when="-",
    remedy="none: idle, empty or never written",
    mending=Mending.NOTHING,
)
