"""N5, no run."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

N5: Final = Rule(
    code=FindingCode.NO_RUN,
    kind=RuleClass.STALLED,
    compares="the ledger's last sign of a run against the feed's schedule, where records wait",
    endings={Level.L1: Ending.BROKER},
    verdicts=(Verdict.UNKNOWN,),
    not_when="nothing waits; a batch is held; less than three pauses of the schedule have passed",
    remedy="find out why the scheduler does not run the feed",
    mending=Mending.NOTHING,
    grows=True,
)
