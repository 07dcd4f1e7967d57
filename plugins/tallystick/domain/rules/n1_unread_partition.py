"""N1, unread partition: the broker has records in it, and the ledger does not know it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.rules.causes import same_topic
from tallystick.domain.rules.evidence import of_topic
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

N1: Final = Rule(
    code=FindingCode.UNREAD_PARTITION,
    kind=RuleClass.LOSS,
    compares="the broker's partitions against the ledger's",
    endings={Level.L1: Ending.BROKER},
    verdicts=(Verdict.UNKNOWN,),
    not_when="a partition without a record",
    remedy="the next run starts it at its log start",
    one_cause=same_topic("partitions no plan has seen"),
    mending=Mending.NOTHING,
    traits={Trait.GROWS},
)


def unread_partitions(
    feed: str, generations: Mapping[int, GenerationAccount], snapshot: BrokerSnapshot
) -> tuple[Finding, ...]:
    """Partitions with records that the broker has and the ledger doesn't know."""
    return tuple(
        Finding(
            rule=N1,
            verdict=Verdict.UNKNOWN,
            level=Level.L1,
            feed=feed,
            topic=snapshot.topic,
            partition=partition,
            from_offset=bounds.log_start_offset,
            until_offset=bounds.high_watermark,
            cause="no plan has looked at this partition yet.",
            next_step=f"The next run starts it at its log start: tallystick land {feed}",
            evidence=of_topic(snapshot.topic_id),
        )
        for partition, bounds in sorted(snapshot.partitions.items())
        if partition not in generations and bounds.log_start_offset < bounds.high_watermark
    )
