"""The ledger against itself: overlaps, skips, short reads, unreadable records (B1, A6, A7, A11).

The schema refuses an overlap, a second life of one log and a frontier that skips; so these rules
speak only where somebody has written past the schema, and that is what they are for. What is left
unread in a log that a rebuild has closed is no contradiction, and no plan asks for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.states import Verdict
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange, offset_range, overlaps_in, subtract
from tallystick.domain.rules.a6_offsets_skipped import A6
from tallystick.domain.rules.a7_short_read import A7
from tallystick.domain.rules.a11_unreadable_record import A11
from tallystick.domain.rules.b1_ledger_overlap import B1
from tallystick.domain.rules.findings import (
    Finding,
    FindingCode,
    Level,
    finding,
    finding_in_batch,
    kept_in,
)


def overlaps_in_ledger(
    feed: str, account: GenerationAccount, settled: Sequence[OffsetRange]
) -> tuple[Finding, ...]:
    """Offsets that two or more committed or lost ranges of one generation hold."""
    return tuple(
        finding(
            feed,
            account,
            each,
            B1,
            Verdict.PROVEN_DUP,
            level=Level.L1,
            cause=f"{count} ranges of the ledger hold these offsets, which its schema refuses.",
            next_step=(
                "Find out who changed the ledger's schema or rows by hand; look which files hold"
                f" them: ./tallystick files {feed}"
            ),
            evidence={"ranges": count},
        )
        for each in overlaps_in(settled)
        for count in [sum(one.intersection(each) is not None for one in settled)]
    )


def landed_in_two_lives(
    feed: str, account: GenerationAccount, offsets: OffsetRange, earlier: int
) -> Finding:
    """Offsets that a generation and an earlier one of the same topic id have both committed."""
    found = finding(
        feed,
        account,
        offsets,
        B1,
        Verdict.PROVEN_DUP,
        level=Level.L1,
        cause=(
            f"generations {earlier} and {account.ordinal} of this log have both landed these"
            " offsets, under one topic id, and no finding says that the log was cut at or below"
            " them: the same records are there twice."
        ),
        next_step=(
            f"If a repair opened generation {account.ordinal}, it began below offsets that were"
            " landed beyond a gap; else somebody opened it by hand, which the ledger's schema"
            f" refuses: find out who. Readers of gen={account.ordinal} and gen={earlier} count"
            " these rows twice; nothing is moved before a person says which copy is to stay."
        ),
        evidence={"generations": [earlier, account.ordinal], "topic_id": account.topic_id},
    )
    # A third life that holds them too is another trouble.
    return replace(found, subject=f"generation {earlier}")


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
            A6,
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


def left_unread(feed: str, account: GenerationAccount, offsets: OffsetRange) -> Finding:
    """Offsets that were seen in a log that a rebuild has closed, and that it holds no more of."""
    return finding(
        feed,
        account,
        offsets,
        A6,
        Verdict.UNKNOWN,
        level=Level.L1,
        cause=(
            f"these offsets of generation {account.ordinal} were seen, or lie below others that"
            " were landed. This ledger has them neither as landed nor as lost, and a rebuild has"
            " closed their log, for a later life of it was published."
        ),
        next_step=(
            "No plan asks for them any more. If a directory that was taken away holds them, put it"
            f" back: ./tallystick ledger rebuild {feed}. A later generation of the same topic id"
            " holds the same records below the offset at which the log was cut. What is left, two"
            " people may accept: ./tallystick waive --help"
        ),
        evidence={"landed_until": account.frontier, "topic_id": account.topic_id},
    )


def short_read(plan: BatchPlan, missing: OffsetRange) -> Finding:
    """Offsets that an attempt should have landed and did not, for no proven cause."""
    return finding_in_batch(
        plan,
        missing,
        A7,
        Verdict.UNKNOWN,
        level=Level.L0,
        cause=(
            f"batch {plan.batch_id} should hold these offsets, none is there, and the log proves"
            " no hole. Nothing of the batch was committed."
        ),
        next_step=f"The next run lands them again: ./tallystick land {plan.feed}",
        evidence={"batch": plan.batch_id},
    )


def unreadable_record(
    plan: BatchPlan, offsets: OffsetRange, reason: str, kept: Sequence[str] = ()
) -> Finding:
    """One offset that Spark can't read, while it reads what is beside it; `kept` are the places of
    files that may hold it.
    """
    evidence: dict[str, object] = {"reason": reason, "topic_id": plan.topic_id}
    if kept:
        evidence["kept"] = list(kept)
    return finding_in_batch(
        plan,
        offsets,
        A11,
        Verdict.UNKNOWN,
        level=Level.L0,
        cause=(
            f"Spark can't read the record at offset {offsets.from_offset}, and reads what is beside"
            f" it: {reason.rstrip('.')}."
        ),
        next_step=(
            f"{kept_in(evidence)}All around it is landed. Try it again after an upgrade, before"
            f" retention deletes it: ./tallystick repair {plan.feed} NUMBER. Two people may"
            " give it up: ./tallystick waive --help"
        ),
        evidence=evidence,
    )


def standing_unreadable(
    generations: Mapping[int, GenerationAccount],
    recorded: Sequence[Finding],
    claimed: Collection[OffsetRange],
) -> tuple[Finding, ...]:
    """The unreadable records whose offset is neither landed nor lost to this day.

    `claimed` are the ranges that unfinished batches hold: a try is no landing.
    """
    return tuple(
        each
        for each in recorded
        if each.code is FindingCode.UNREADABLE_RECORD and _is_open(generations, each, claimed)
    )


def _is_open(
    generations: Mapping[int, GenerationAccount], found: Finding, claimed: Collection[OffsetRange]
) -> bool:
    account = generations.get(-1 if found.partition is None else found.partition)
    if account is None or account.ordinal != found.generation or found.from_offset is None:
        return False
    settled = set(account.beyond) - set(account.unreadable) - set(claimed)
    is_settled = any(found.from_offset in each for each in settled)
    return found.from_offset >= account.frontier and not is_settled


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
