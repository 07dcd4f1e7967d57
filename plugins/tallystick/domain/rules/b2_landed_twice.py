"""B2, landed twice."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

B2: Final = Rule(
    code=FindingCode.LANDED_TWICE,
    kind=RuleClass.DUPLICATE,
    compares="offset columns of the files that readers see",
    endings={Level.L2: Ending.LISTING, Level.L3: Ending.FULL_READ},
    verdicts=(Verdict.PROVEN_DUP, Verdict.SUSPECTED),
    not_when="the same numbers in two generations; retracted files",
    remedy=(
        "a stray moves aside; batches that share offsets are landed once more, in place of all of"
        " them"
    ),
    mending=Mending.LAND_AGAIN,
)
