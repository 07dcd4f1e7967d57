"""Z3, compacted record."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

Z3: Final = Rule(
    code=FindingCode.COMPACTED_RECORD,
    kind=RuleClass.BENIGN,
    compares="holes in, or between, batches of a compacted topic",
    endings={Level.L0: Ending.NEVER_RECORDED},
    verdicts=(Verdict.BENIGN_HOLE,),
    not_when="-",
    remedy="none: a newer record has the key",
    mending=Mending.NOTHING,
)
