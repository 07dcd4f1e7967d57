"""A7, short read."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

A7: Final = Rule(
    code=FindingCode.SHORT_READ,
    kind=RuleClass.LOSS,
    compares="planned offsets against rows and proven holes",
    endings={Level.L0: Ending.LEDGER},
    verdicts=(Verdict.UNKNOWN,),
    not_when="a hole at a marker, an aborted or a compacted record, at a range's very end too",
    remedy="nothing was committed; the next run lands it again",
    mending=Mending.NOTHING,
    is_of_plans=True,
)
