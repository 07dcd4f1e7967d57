"""A1, expired."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

A1: Final = Rule(
    code=FindingCode.EXPIRED,
    kind=RuleClass.LOSS,
    compares="same log, log start above the frontier; of a new log, above 0",
    endings={Level.L1: Ending.ACCEPTANCE},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when=(
        "log start equals the frontier; all was landed before it expired; a live attempt holds it"
    ),
    remedy="recorded as lost; land more often, or lengthen the retention; two people may waive it",
    mending=Mending.NOTHING,
    why_not_mended=(
        "these offsets can be had nowhere any more; two people may accept it"
        " (./tallystick waive --help)."
    ),
    rests_on_frontier=True,
    is_of_plans=True,
)
