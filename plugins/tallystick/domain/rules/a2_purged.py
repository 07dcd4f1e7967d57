"""A2, purged."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

A2: Final = Rule(
    code=FindingCode.PURGED,
    kind=RuleClass.LOSS,
    compares="as A1, and the log begins within a batch",
    endings={Level.L1: Ending.ACCEPTANCE},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when="the log begins with a whole batch: retention looks the same, so A1 is said",
    remedy="recorded as lost; find out who deleted them; two people may waive it",
    mending=Mending.NOTHING,
    why_not_mended=(
        "these offsets can be had nowhere any more; two people may accept it"
        " (./tallystick waive --help)."
    ),
    rests_on_frontier=True,
    is_of_plans=True,
)
