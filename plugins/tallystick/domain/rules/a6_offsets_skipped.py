"""A6, offsets skipped: the frontier has passed them, or a rebuild has closed their log.

The schema refuses a frontier that skips, so that is told only where somebody has written past it.
What is left unread in a log that a rebuild has closed is no contradiction, and no plan asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.logs.generation import GenerationAccount
from tallystick.domain.offsets.ranges import OffsetRange, offset_range, subtract
from tallystick.domain.rules.causes import same_log
from tallystick.domain.rules.findings import Finding, finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass, Trait
from tallystick.domain.verdicts import Verdict

A6: Final = Rule(
    code=FindingCode.OFFSETS_SKIPPED,
    kind=RuleClass.LOSS,
    compares=(
        "ranges of the ledger against its frontier; of a log that a rebuild closed, against all"
        " that was seen"
    ),
    endings={Level.L1: Ending.LEDGER},
    verdicts=(Verdict.PROVEN_LOSS, Verdict.UNKNOWN),
    not_when="a gap beyond the frontier: the next plan asks for it",
    remedy="land the offsets by a feed of their own",
    one_cause=same_log("offsets passed over"),
    mending=Mending.NOTHING,
    traits={Trait.RESTS_ON_FRONTIER},
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
            A6,
            Verdict.PROVEN_LOSS,
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
