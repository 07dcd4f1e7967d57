"""C3, rows differ."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

C3: Final = Rule(
    code=FindingCode.ROWS_DIFFER,
    kind=RuleClass.CORRUPTION,
    compares="landed rows against the records that another Kafka client reads",
    endings={Level.L4: Ending.SECOND_READ},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when="expired, or cleaned from a compacted topic; the log is known to be cut",
    remedy=(
        "before the commit: nothing was committed, the next run lands it again; after it: landed"
        " again while the broker has it"
    ),
    mending=Mending.LAND_AGAIN,
)
