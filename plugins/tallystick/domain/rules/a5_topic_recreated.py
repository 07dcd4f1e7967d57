"""A5, topic recreated."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

A5: Final = Rule(
    code=FindingCode.TOPIC_RECREATED,
    kind=RuleClass.LOSS,
    compares="topic id and cluster id",
    endings={Level.L1: Ending.ACCEPTANCE},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when="earliest offset 0: a young topic begins there too",
    remedy="a new generation in a directory of its own",
    mending=Mending.NOTHING,
    why_not_mended=(
        "the old log is gone, with what nobody had read; two people may accept it"
        " (./tallystick waive --help)."
    ),
    rests_on_frontier=True,
    is_of_plans=True,
)
