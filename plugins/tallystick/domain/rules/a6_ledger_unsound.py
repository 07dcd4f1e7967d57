"""A6, ledger unsound: what the ledger has of a log contradicts itself, or leaves offsets to nobody.

The schema refuses overlaps, a frontier that skips, and a second life of one log: those are told
only where somebody has written past it. What is left unread in a log that a rebuild has closed is
no contradiction, and no plan asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange, offset_range, overlaps_in, subtract
from tallystick.domain.rules.findings import Finding, Place, finding
from tallystick.domain.rules.rule import Ending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

SKIPPED: Final = "offsets skipped"
LEFT: Final = "offsets left"
OVERLAP: Final = "overlap"
TWO_LIVES: Final = "two lives"


def _its_log(found: Finding) -> str:
    return f"{found.name} of {found.topic}-{found.partition}, generation {found.generation}"


A6: Final = Rule(
    code=FindingCode.LEDGER_UNSOUND,
    names=(SKIPPED, LEFT, OVERLAP, TWO_LIVES),
    kind=RuleClass.LOSS,
    compares=(
        "ranges of the ledger against its frontier and each other; two lives of one topic id; of a"
        " log that a rebuild closed, against all that was seen"
    ),
    endings={Level.L1: Ending.LEDGER},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.PROVEN_DUP, Verdict.UNKNOWN),
    not_when=(
        "a gap beyond the frontier: the next plan asks for it; the claim of a repair over what it"
        " replaces; a log that was cut"
    ),
    remedy="find out who wrote past the schema; land skipped offsets by a feed of their own",
    one_cause=_its_log,
    traits={Trait.RESTS_ON_FRONTIER},
)


def skips_in_ledger(
    feed: str, account: GenerationAccount, settled: Sequence[OffsetRange]
) -> tuple[Finding, ...]:
    """Offsets below the frontier that are neither committed nor recorded as lost."""
    whole = offset_range(account.partition, account.first_offset, account.frontier)
    return tuple(
        finding(
            A6,
            Place.of_log(feed, account, each),
            name=SKIPPED,
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
        A6,
        Place.of_log(feed, account, offsets),
        Verdict.UNKNOWN,
        name=LEFT,
        cause=(
            f"these offsets of generation {account.ordinal} were seen, or lie below others that"
            " were landed. This ledger has them neither as landed nor as lost, and a rebuild has"
            " closed their log, for a later life of it was published."
        ),
        next_step=(
            "No plan asks for them any more. If a directory that was taken away holds them, put it"
            f" back: tallystick ledger rebuild {feed}. A later generation of the same topic id"
            " holds the same records below the offset at which the log was cut. What is left, two"
            " people may accept: tallystick waive --help"
        ),
        evidence={"landed_until": account.frontier, "topic_id": account.topic_id},
    )


def overlaps_in_ledger(
    feed: str, account: GenerationAccount, settled: Sequence[OffsetRange]
) -> tuple[Finding, ...]:
    """Offsets that two or more committed or lost ranges of one generation hold."""
    return tuple(
        finding(
            A6,
            Place.of_log(feed, account, each),
            Verdict.PROVEN_DUP,
            name=OVERLAP,
            cause=f"{count} ranges of the ledger hold these offsets, which its schema refuses.",
            next_step=(
                "Find out who changed the ledger's schema or rows by hand; look which files hold"
                f" them: tallystick files {feed}"
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
    return finding(
        A6,
        # A third life that holds them too is another trouble.
        replace(Place.of_log(feed, account, offsets), subject=f"generation {earlier}"),
        Verdict.PROVEN_DUP,
        name=TWO_LIVES,
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
