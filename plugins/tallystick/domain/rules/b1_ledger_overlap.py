"""B1, ledger overlap: two ranges of the ledger hold the same offsets.

The schema refuses that, and a second life of one log; so the rule speaks only where somebody has
written past the schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange, overlaps_in
from tallystick.domain.rules.causes import same_log
from tallystick.domain.rules.findings import Finding, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass
from tallystick.domain.verdicts import Verdict

B1: Final = Rule(
    code=FindingCode.LEDGER_OVERLAP,
    kind=RuleClass.DUPLICATE,
    compares="ranges of the ledger against each other, and those of two lives of one topic id",
    endings={Level.L1: Ending.LEDGER},
    verdicts=(Verdict.PROVEN_DUP,),
    not_when="the claim of a repair over what it replaces; ranges that touch; a log that was cut",
    remedy="find out who wrote past the schema",
    one_cause=same_log("overlap"),
    mending=Mending.NOTHING,
    traits=frozenset(),
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
    found = finding(
        feed,
        account,
        offsets,
        B1,
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
