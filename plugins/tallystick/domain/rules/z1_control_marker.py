"""Z1, control marker: each transaction ends with one, which has an offset and is no record."""

from __future__ import annotations

from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.causes import same_topic
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.proven_hole import HoleCount, proven_hole
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass
from tallystick.domain.verdicts import Verdict

Z1: Final = Rule(
    code=FindingCode.CONTROL_MARKER,
    kind=RuleClass.BENIGN,
    compares="holes at control batches",
    endings={Level.L0: Ending.NEVER_RECORDED},
    verdicts=(Verdict.BENIGN_HOLE,),
    not_when="-",
    remedy="none: each transaction ends with a marker",
    one_cause=same_topic("control markers"),
    mending=Mending.NOTHING,
    traits=frozenset(),
)


def control_markers(feed: str, topic: str, count: HoleCount) -> Finding:
    """What is told of one log's holes of this class."""
    return proven_hole(
        feed,
        topic,
        Z1,
        count,
        "each transaction ends with a marker, which has an offset and is no record",
    )
