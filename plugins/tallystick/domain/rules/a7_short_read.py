"""A7, short read: an attempt should have landed these offsets and did not, for no proven cause.

The proof before each commit compares: nothing of such a batch is committed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rules.causes import its_batch
from tallystick.domain.rules.evidence import batch_in, of_batch
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

A7: Final = Rule(
    code=FindingCode.SHORT_READ,
    kind=RuleClass.LOSS,
    compares="planned offsets against rows and proven holes",
    endings={Level.L0: Ending.LEDGER},
    verdicts=(Verdict.UNKNOWN,),
    not_when="a hole at a marker, an aborted or a compacted record, at a range's very end too",
    remedy="nothing was committed; the next run lands it again",
    one_cause=its_batch,
    traits={Trait.OF_RUNS},
)


def short_read(plan: BatchPlan, missing: OffsetRange) -> Finding:
    """Offsets that an attempt should have landed and did not, for no proven cause.

    The proof before each commit compares: nothing of such a batch is committed.
    """
    return finding(
        A7,
        Place.in_batch(plan, missing),
        cause=(
            f"batch {plan.batch_id} should hold these offsets, none is there, and the log proves"
            " no hole. Nothing of the batch was committed."
        ),
        next_step=f"The next run lands them again: tallystick land {plan.feed}",
        evidence=of_batch(plan.batch_id),
    )


def standing_short_reads(
    generations: Mapping[int, GenerationAccount],
    recorded: Sequence[Finding],
    open_repairs: Collection[str],
) -> tuple[Finding, ...]:
    """The short reads on record whose offsets are not accounted for to this day.

    `open_repairs` are the repairs that are neither committed nor given up.
    """
    return tuple(
        each
        for each in recorded
        if each.rule == A7 and not _is_over(generations, each, open_repairs)
    )


def _is_over(
    generations: Mapping[int, GenerationAccount], recorded: Finding, open_repairs: Collection[str]
) -> bool:
    """True for a short read whose offsets are landed, a proven hole, or lost by now."""
    # A repair's offsets were landed once: the frontier has passed them long ago.
    if recorded.partition is None or batch_in(recorded.evidence) in open_repairs:
        return False
    account = generations.get(recorded.partition)
    if account is None or account.ordinal != recorded.generation:
        return True
    return (recorded.until_offset or 0) <= account.frontier
