"""The ledger against itself: overlaps, skipped offsets, reads that fell short (B1, A6, A7).

The schema refuses an overlap and a frontier that skips; so these rules speak only where somebody
has written past the schema, and that is what they are for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tallystick.domain.batch import BatchPlan
from tallystick.domain.findings import Finding, FindingCode, Level, finding
from tallystick.domain.generation import GenerationAccount
from tallystick.domain.ranges import OffsetRange, offset_range, overlaps_in, subtract
from tallystick.domain.states import Verdict


def overlaps_in_ledger(
    feed: str, account: GenerationAccount, settled: Sequence[OffsetRange]
) -> tuple[Finding, ...]:
    """Offsets that two or more committed or lost ranges of one generation hold."""
    return tuple(
        finding(
            feed,
            account,
            each,
            FindingCode.LEDGER_OVERLAP,
            Verdict.PROVEN_DUP,
            level=Level.L1,
            cause="two ranges of the ledger hold these offsets, which its schema refuses.",
            next_step=(
                "Find out who changed the ledger's schema or rows by hand; look which files hold"
                f" them: ./tallystick files {feed}"
            ),
        )
        for each in overlaps_in(settled)
    )


def skips_in_ledger(
    feed: str, account: GenerationAccount, settled: Sequence[OffsetRange]
) -> tuple[Finding, ...]:
    """Offsets below the frontier that are neither committed nor recorded as lost."""
    whole = offset_range(account.partition, account.first_offset, account.frontier)
    return tuple(
        finding(
            feed,
            account,
            each,
            FindingCode.RESET_SKIP,
            Verdict.PROVEN_LOSS,
            level=Level.L1,
            cause=(
                "the frontier has passed these offsets, but nothing was landed there and no loss"
                " is recorded."
            ),
            next_step=(
                "Find out who moved the frontier by hand. No plan asks for offsets below it again,"
                " so land them by a feed of their own while the broker has them."
            ),
        )
        for each in (subtract(whole, settled) if whole else ())
    )


def short_read(plan: BatchPlan, missing: OffsetRange) -> Finding:
    """Offsets that an attempt should have landed and did not, for no proven cause."""
    return Finding(
        code=FindingCode.SHORT_READ,
        verdict=Verdict.UNKNOWN,
        level=Level.L0,
        feed=plan.feed,
        topic=plan.topic,
        generation=plan.ordinal,
        partition=missing.partition.partition,
        from_offset=missing.from_offset,
        until_offset=missing.until_offset,
        cause=(
            f"batch {plan.batch_id} should hold these offsets, none is there, and the log proves"
            " no hole. Nothing of the batch was committed."
        ),
        next_step=f"The next run lands them again: ./tallystick land {plan.feed}",
        evidence={"batch": plan.batch_id},
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
        if each.code is FindingCode.SHORT_READ and not is_over(generations, each, open_repairs)
    )


def is_over(
    generations: Mapping[int, GenerationAccount], recorded: Finding, open_repairs: Collection[str]
) -> bool:
    """True for a short read whose offsets are landed, a proven hole, or lost by now."""
    if recorded.code is not FindingCode.SHORT_READ or recorded.partition is None:
        return False
    if recorded.evidence.get("batch") in open_repairs:
        # A repair's offsets were landed once: the frontier has passed them long ago.
        return False
    account = generations.get(recorded.partition)
    if account is None or account.ordinal != recorded.generation:
        return True
    return (recorded.until_offset or 0) <= account.frontier
