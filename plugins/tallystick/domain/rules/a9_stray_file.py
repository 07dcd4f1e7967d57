"""A9, stray file."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

A9: Final = Rule(
    code=FindingCode.STRAY_FILE,
    kind=RuleClass.DUPLICATE,
    compares="the listing against committed files",
    endings={Level.L2: Ending.LISTING},
    verdicts=(Verdict.SUSPECTED,),
    not_when=(
        "names that every reader skips; staging; a batch that was committed meanwhile; a committed"
        " file that was moved"
    ),
    remedy="moved to quarantine; by its number where it may be the only copy of its rows",
    mending=Mending.MOVE_ASIDE,
)
