"""Offsets of a landed range that hold no row, for a proven cause: normal, whatever the cause.

They are told with their count and the reason (Z1 to Z3), never recorded, and fail nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.states import HoleClass
from tallystick.domain.finding_codes import Level
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.rule import Rule
from tallystick.domain.verdicts import Verdict

NOTHING_TO_DO: Final = "Nothing: this is as it should be."


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


def proven_hole(feed: str, topic: str, rule: Rule, count: HoleCount, why: str) -> Finding:
    """One finding for a class of holes in one log; it reaches from the first to the last."""
    return Finding(
        rule=rule,
        verdict=Verdict.BENIGN_HOLE,
        level=Level.L0,
        feed=feed,
        topic=topic,
        generation=count.generation,
        partition=count.partition,
        from_offset=count.from_offset,
        until_offset=count.until_offset,
        cause=f"{count.count} offset(s) hold no row: {why}.",
        next_step=NOTHING_TO_DO,
        evidence={"count": count.count},
    )
