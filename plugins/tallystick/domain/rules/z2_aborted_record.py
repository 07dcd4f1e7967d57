"""Z2, aborted record: its transaction was aborted, and the feed reads committed records only."""

from __future__ import annotations

from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.causes import same_topic
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.proven_hole import HoleCount, proven_hole
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass
from tallystick.domain.verdicts import Verdict

Z2: Final = Rule(
    code=FindingCode.ABORTED_RECORD,
    kind=RuleClass.BENIGN,
    compares="holes inside aborted transactions, read_committed",
    endings={Level.L0: Ending.NEVER_RECORDED},
    verdicts=(Verdict.BENIGN_HOLE,),
    not_when="-",
    remedy="none: nobody is to see them",
    one_cause=same_topic("aborted records"),
    mending=Mending.NOTHING,
    traits=frozenset(),
)


def aborted_records(feed: str, topic: str, count: HoleCount) -> Finding:
    """What is told of one log's holes of this class."""
    return proven_hole(
        feed,
        topic,
        Z2,
        count,
        "their transactions were aborted, and the feed reads committed records only",
    )
