"""What looks like a loss and is none: holes with a proven cause, logs without a record (Z1 to Z4).

These findings are told with their counts and the reason why they are normal. They are never
recorded as troubles, and fail nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.states import HoleClass, Verdict
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.rules.findings import Finding, Level, finding
from tallystick.domain.rules.rule import Rule
from tallystick.domain.rules.z1_control_marker import Z1
from tallystick.domain.rules.z2_aborted_record import Z2
from tallystick.domain.rules.z3_compacted_record import Z3
from tallystick.domain.rules.z4_nothing_there import Z4

_NOTHING_TO_DO: Final = "Nothing: this is as it should be."
_REASONS: Final[Mapping[HoleClass, tuple[Rule, str]]] = {
    HoleClass.CONTROL: (
        Z1,
        "each transaction ends with a marker, which has an offset and is no record",
    ),
    HoleClass.ABORTED: (
        Z2,
        "their transactions were aborted, and the feed reads committed records only",
    ),
    HoleClass.COMPACTED: (
        Z3,
        "a newer record of the same key has taken their place: the topic is compacted",
    ),
}


@dataclass(frozen=True, slots=True)
class HoleCount:
    """The proven holes of one class in one generation of one partition."""

    generation: int
    """Its ordinal."""
    partition: int
    kind: HoleClass
    count: int
    from_offset: int
    """The first of them (included)."""
    until_offset: int
    """One past the last of them (excluded)."""


def benign_holes(feed: str, topic: str, counts: Iterable[HoleCount]) -> tuple[Finding, ...]:
    """One finding for each class of holes in each log; it reaches from the first to the last."""
    return tuple(
        Finding(
            rule=_REASONS[each.kind][0],
            verdict=Verdict.BENIGN_HOLE,
            level=Level.L0,
            feed=feed,
            topic=topic,
            generation=each.generation,
            partition=each.partition,
            from_offset=each.from_offset,
            until_offset=each.until_offset,
            cause=f"{each.count} offset(s) hold no row: {_REASONS[each.kind][1]}.",
            next_step=_NOTHING_TO_DO,
            evidence={"count": each.count},
        )
        for each in counts
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
            Verdict.BENIGN_HOLE,
            level=Level.L1,
            cause=(
                "nothing was ever written here."
                if bounds.high_watermark == 0
                else f"the log is empty: all below {bounds.high_watermark} has expired."
            ),
            next_step=_NOTHING_TO_DO,
            evidence={"offset": bounds.high_watermark},
        )
        for partition, bounds in sorted(snapshot.partitions.items())
        if bounds.log_start_offset == bounds.high_watermark
        and partition in generations
        and generations[partition].topic_id == snapshot.topic_id
    )
