"""N3, unfinished batch."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

N3: Final = Rule(
    code=FindingCode.UNFINISHED_BATCH,
    kind=RuleClass.STALLED,
    compares="batches against the ledger's clock; published directories against their manifests",
    endings={Level.L1: Ending.LEDGER, Level.L2: Ending.LISTING},
    verdicts=(Verdict.UNKNOWN,),
    not_when="a lease runs, for as long as it may; it waits for its turn, or for its rename",
    remedy="the next run adopts, publishes or sweeps it; a repair writes its manifest anew",
    mending=Mending.FINISH,
)
