"""B1, ledger overlap."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

B1: Final = Rule(
    code=FindingCode.LEDGER_OVERLAP,
    kind=RuleClass.DUPLICATE,
    compares="ranges of the ledger against each other, and those of two lives of one topic id",
    endings={Level.L1: Ending.LEDGER},
    verdicts=(Verdict.PROVEN_DUP,),
    not_when="the claim of a repair over what it replaces; ranges that touch; a log that was cut",
    remedy="find out who wrote past the schema",
    mending=Mending.NOTHING,
)
