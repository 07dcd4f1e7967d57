"""N4, failing batch."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

N4: Final = Rule(
    code=FindingCode.FAILING_BATCH,
    kind=RuleClass.STALLED,
    compares="attempts of unfinished batches that have ended without a commit",
    endings={Level.L1: Ending.LEDGER},
    verdicts=(Verdict.UNKNOWN,),
    not_when="two failures; the first success ends it",
    remedy="the last attempt's reason says what to mend; the next run tries again",
    mending=Mending.NOTHING,
)
