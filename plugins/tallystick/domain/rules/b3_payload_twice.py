"""B3, payload twice."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

B3: Final = Rule(
    code=FindingCode.PAYLOAD_TWICE,
    kind=RuleClass.DUPLICATE,
    compares="key, value and headers of landed rows within a horizon",
    endings={Level.L3: Ending.PAYLOADS},
    verdicts=(Verdict.SUSPECTED,),
    not_when="equal heartbeats are legal, so it is asked for by reconcile.payload_horizon",
    remedy="make the producer idempotent; never touch raw rows",
    mending=Mending.NOTHING,
)
