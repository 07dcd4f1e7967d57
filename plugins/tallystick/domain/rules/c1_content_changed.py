"""C1, content changed."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

C1: Final = Rule(
    code=FindingCode.CONTENT_CHANGED,
    kind=RuleClass.CORRUPTION,
    compares=(
        "length and checksum against those of the commit, or content fingerprint against that of"
        " the first full read"
    ),
    endings={Level.L2: Ending.LISTING, Level.L3: Ending.FULL_READ},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when="-",
    remedy="landed again while the broker has it",
    mending=Mending.LAND_AGAIN,
)
