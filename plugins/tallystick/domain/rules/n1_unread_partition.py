"""N1, unread partition."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

N1: Final = Rule(
    code=FindingCode.UNREAD_PARTITION,
    kind=RuleClass.LOSS,
    compares="the broker's partitions against the ledger's",
    endings={Level.L1: Ending.BROKER},
    verdicts=(Verdict.UNKNOWN,),
    not_when="a partition without a record",
    remedy="the next run starts it at its log start",
    mending=Mending.NOTHING,
    grows=True,
)
