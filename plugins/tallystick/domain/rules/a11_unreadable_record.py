"""A11, unreadable record."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

A11: Final = Rule(
    code=FindingCode.UNREADABLE_RECORD,
    kind=RuleClass.LOSS,
    compares=(
        "single offsets that Spark failed to read twice, beside one of the partition that it read"
    ),
    endings={Level.L0: Ending.LEDGER},
    verdicts=(Verdict.UNKNOWN,),
    not_when="nothing of the partition can be read; the landing fails for another reason",
    remedy="all around it is landed; a repair tries it again; two people may give it up",
    mending=Mending.READ_AGAIN,
    is_of_plans=True,
)
