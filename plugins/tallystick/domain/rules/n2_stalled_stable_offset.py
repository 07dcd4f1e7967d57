"""N2, stalled stable offset."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

N2: Final = Rule(
    code=FindingCode.STALLED_STABLE_OFFSET,
    kind=RuleClass.STALLED,
    compares="last stable offset and high watermark against earlier snapshots",
    endings={Level.L1: Ending.BROKER},
    verdicts=(Verdict.UNKNOWN,),
    not_when="open for less than the brokers allow; nothing has come behind it; read_uncommitted",
    remedy="abort the producer's transaction",
    mending=Mending.NOTHING,
    grows=True,
)
