"""A10, ledger behind."""

from __future__ import annotations

from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

A10: Final = Rule(
    code=FindingCode.LEDGER_BEHIND,
    kind=RuleClass.DUPLICATE,
    compares=(
        "published manifests, and rows in batches' directories without one, against the ledger"
    ),
    endings={Level.L2: Ending.LISTING},
    verdicts=(Verdict.UNKNOWN,),
    not_when="a copy of a batch that the ledger knows, or of committed rows, is A9",
    remedy=(
        "planning stops; rebuild or restore the ledger; a directory without a manifest is moved"
        " aside by its number"
    ),
    mending=Mending.MOVE_ASIDE_IF_BARE,
)
