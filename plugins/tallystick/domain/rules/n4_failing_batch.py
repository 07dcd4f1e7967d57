"""N4, failing batch: tried again and again, and never in success.

Failures are counted, not the age of a lease: a batch that fails quickly is told too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tallystick.domain.batches.batch import TriedBatch
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.causes import its_batch
from tallystick.domain.rules.evidence import of_batch
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass
from tallystick.domain.verdicts import Verdict

N4: Final = Rule(
    code=FindingCode.FAILING_BATCH,
    kind=RuleClass.STALLED,
    compares="attempts of unfinished batches that have ended without a commit",
    endings={Level.L1: Ending.LEDGER},
    verdicts=(Verdict.UNKNOWN,),
    not_when="two failures; the first success ends it",
    remedy="the last attempt's reason says what to mend; the next run tries again",
    one_cause=its_batch,
    mending=Mending.NOTHING,
    traits=frozenset(),
)

FAILING_AFTER: Final = 3


def failing_batches(feed: str, topic: str, tried: Sequence[TriedBatch]) -> tuple[Finding, ...]:
    """Batches that were tried again and again, and never in success."""
    return tuple(_failing(feed, topic, each) for each in tried if each.failures >= FAILING_AFTER)


def _failing(feed: str, topic: str, tried: TriedBatch) -> Finding:
    """Of one partition, where the batch holds no other."""
    ranges = [each.offsets for each in tried.plan.ranges]
    alone = ranges[0] if len(ranges) == 1 else None
    said = f"The last reason: {tried.last_failure}" if tried.last_failure else "None said why."
    return Finding(
        rule=N4,
        verdict=Verdict.UNKNOWN,
        level=Level.L1,
        feed=feed,
        topic=topic,
        generation=tried.plan.ordinal if alone else None,
        partition=alone.partition.partition if alone else None,
        from_offset=alone.from_offset if alone else None,
        until_offset=alone.until_offset if alone else None,
        cause=(
            f"batch {tried.plan.batch_id} was tried {tried.failures} times, and failed each time."
            f" {said.rstrip('.')}."
        ),
        next_step=f"Mend what the reason names; every run tries again: tallystick batches {feed}",
        evidence={
            **of_batch(tried.plan.batch_id),
            "failures": tried.failures,
            "reason": tried.last_failure,
            "ranges": [str(each) for each in ranges[:20]],
        },
        subject=tried.plan.batch_id,
    )
