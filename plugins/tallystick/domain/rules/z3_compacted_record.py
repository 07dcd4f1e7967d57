"""Z3, compacted record: a newer record of the same key has taken its place."""

from __future__ import annotations

from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.causes import same_topic
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.proven_hole import HoleCount, proven_hole
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass
from tallystick.domain.verdicts import Verdict

Z3: Final = Rule(
    code=FindingCode.COMPACTED_RECORD,
    kind=RuleClass.BENIGN,
    compares="holes in, or between, batches of a compacted topic",
    endings={Level.L0: Ending.NEVER_RECORDED},
    verdicts=(Verdict.BENIGN_HOLE,),
    not_when="-",
    remedy="none: a newer record has the key",
    one_cause=same_topic("compacted records"),
    mending=Mending.NOTHING,
    traits=frozenset(),
)


def compacted_records(feed: str, topic: str, count: HoleCount) -> Finding:
    """What is told of one log's holes of this class."""
    return proven_hole(
        feed,
        topic,
        Z3,
        count,
        "a newer record of the same key has taken their place: the topic is compacted",
    )
