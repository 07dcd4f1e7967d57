"""A8, committed file missing."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

A8: Final = Rule(
    code=FindingCode.COMMITTED_FILE_MISSING,
    kind=RuleClass.LOSS,
    compares="committed files against the listing; ranges that a repair has recorded as lost",
    endings={Level.L1: Ending.ACCEPTANCE, Level.L2: Ending.LISTING, Level.L3: Ending.FULL_READ},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when="a range of holes alone has no file; a batch on its way from staging",
    remedy="landed again while the broker has it; moved back, or given up, when named",
    mending=Mending.LAND_AGAIN,
)
