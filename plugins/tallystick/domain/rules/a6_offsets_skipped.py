"""A6, offsets skipped."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

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
    mending=Mending.NOTHING,
    rests_on_frontier=True,
)
