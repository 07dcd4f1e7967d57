"""A3, truncated: the log ends before offsets that were readable.

`planning.log_judgement` compares, for a plan changes the ledger with it; `log_findings` tells it.
"""

from __future__ import annotations

from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.planning.log_changes import EndedGeneration, Observation
from tallystick.domain.rules.causes import same_log
from tallystick.domain.rules.cut_log import cut_finding
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

A3: Final = Rule(
    code=FindingCode.TRUNCATED,
    kind=RuleClass.LOSS,
    compares=(
        "same log, high watermark or end of the epoch in which it was seen, against what was"
        " readable"
    ),
    endings={Level.L1: Ending.NEW_GENERATION},
    verdicts=(Verdict.PROVEN_LOSS,),
    not_when="a high watermark that lags while the epochs show a whole log",
    remedy="the partition stops; a new generation on the operator's word",
    one_cause=same_log("cut"),
    mending=Mending.NEW_GENERATION,
    traits={Trait.CUT, Trait.OF_RUNS},
)


def truncated(
    feed: str, account: GenerationAccount, seen: Observation | None, stopped: EndedGeneration
) -> Finding:
    """A partition whose log ends below what was readable, or did before it grew again."""
    bounds = seen.snapshot.partitions.get(account.partition.partition) if seen else None
    shown_end = bounds.high_watermark if bounds else None
    return cut_finding(feed, account, seen, stopped, A3, shown_end=shown_end)
