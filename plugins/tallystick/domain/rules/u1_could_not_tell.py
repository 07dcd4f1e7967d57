"""U1, could not tell."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

U1: Final = Rule(
    code=FindingCode.COULD_NOT_TELL,
    kind=RuleClass.STALLED,
    compares="the witnesses' answers against what was asked",
    endings={
        Level.L1: Ending.BROKER,
        Level.L2: Ending.LISTING,
        Level.L3: Ending.FULL_READ,
        Level.L4: Ending.BROKER,
    },
    verdicts=(Verdict.UNKNOWN,),
    not_when="every witness answered, and the broker for every partition",
    remedy="mend the witness and run again",
    mending=Mending.LAND_AGAIN_IF_NAMED,
    is_of_plans=True,
)
