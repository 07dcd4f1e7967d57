"""Z4, nothing there: a log without a record, never written or all expired. Never recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.rules.causes import same_topic
from tallystick.domain.rules.findings import Finding, finding
from tallystick.domain.rules.proven_hole import NOTHING_TO_DO
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass
from tallystick.domain.verdicts import Verdict

Z4: Final = Rule(
    code=FindingCode.NOTHING_THERE,
    kind=RuleClass.BENIGN,
    compares="log start equals high watermark",
    endings={Level.L1: Ending.NEVER_RECORDED},
    verdicts=(Verdict.BENIGN_HOLE,),
    not_when="-",
    remedy="none: idle, empty or never written",
    one_cause=same_topic("empty logs"),
    mending=Mending.NOTHING,
    traits=frozenset(),
)


def nothing_there(
    feed: str, generations: Mapping[int, GenerationAccount], snapshot: BrokerSnapshot
) -> tuple[Finding, ...]:
    """One finding for each known log that holds nothing now: never written, or all expired."""
    return tuple(
        finding(
            feed,
            generations[partition],
            None,
            Z4,
            cause=(
                "nothing was ever written here."
                if bounds.high_watermark == 0
                else f"the log is empty: all below {bounds.high_watermark} has expired."
            ),
            next_step=NOTHING_TO_DO,
            evidence={"offset": bounds.high_watermark},
        )
        for partition, bounds in sorted(snapshot.partitions.items())
        if bounds.log_start_offset == bounds.high_watermark
        and partition in generations
        and generations[partition].topic_id == snapshot.topic_id
    )
