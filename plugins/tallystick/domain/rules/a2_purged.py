"""A2, purged: somebody deleted these offsets before they were landed.

`planning.log_judgement` compares, for a plan changes the ledger with it; `log_findings` tells it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rules.causes import same_topic
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.losses import NOT_MENDED, lost_unread
from tallystick.domain.rules.rule import Ending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

A2: Final = Rule(
    code=FindingCode.PURGED,
    kind=RuleClass.LOSS,
    compares="as A1, and the log begins within a batch",
    endings={Level.L1: Ending.ACCEPTANCE},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when="the log begins with a whole batch: retention looks the same, so A1 is said",
    remedy="recorded as lost; find out who deleted them; two people may waive it",
    one_cause=same_topic("deleted records"),
    traits={Trait.RESTS_ON_FRONTIER, Trait.OF_RUNS},
    why_not_mended=NOT_MENDED,
)


def purged(
    feed: str,
    account: GenerationAccount,
    offsets: OffsetRange,
    evidence: Mapping[str, object] | None = None,
) -> Finding:
    """Offsets that were deleted on purpose, as a log that begins within a batch shows."""
    return lost_unread(
        feed,
        account,
        offsets,
        A2,
        evidence,
        cause=(
            "these offsets were deleted on purpose before they were read: the log begins within a"
            " batch, and retention deletes whole segments"
        ),
        advice="Find out who deleted them, and why.",
    )
