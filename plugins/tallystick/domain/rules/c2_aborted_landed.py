"""C2, aborted landed."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

C2: Final = Rule(
    code=FindingCode.ABORTED_LANDED,
    kind=RuleClass.CORRUPTION,
    compares="landed offsets against the broker's aborted transactions",
    endings={Level.L1: Ending.REPAIR},
    verdicts=(Verdict.PROVEN_DUP,),
    not_when="the feed reads uncommitted records; the range is not retained any more",
    remedy="landed again, read committed",
    mending=Mending.LAND_AGAIN,
)
