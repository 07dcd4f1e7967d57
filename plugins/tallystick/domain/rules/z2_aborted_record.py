"""Z2, aborted record."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

Z2: Final = Rule(
    code=FindingCode.ABORTED_RECORD,
    kind=RuleClass.BENIGN,
    compares="holes inside aborted transactions, read_committed",
    endings={Level.L0: Ending.NEVER_RECORDED},
    verdicts=(Verdict.BENIGN_HOLE,),
    not_when="-",
    remedy="none: nobody is to see them",
    mending=Mending.NOTHING,
)
