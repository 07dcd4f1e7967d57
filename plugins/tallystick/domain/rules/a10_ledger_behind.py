"""A10, ledger behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.findings import Finding
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
    lacks_witness=True,
)


@dataclass(frozen=True, slots=True)
class UnknownBatch:
    """Evidence of a batch's directory that the ledger does not know."""

    path: str
    is_bare: bool
    """True for one without a manifest."""

    def as_json(self) -> dict[str, object]:
        """As it stands on record."""
        return {"path": self.path, **({"is_bare": True} if self.is_bare else {})}

    @classmethod
    def of(cls, found: Finding) -> UnknownBatch | None:
        """What a finding A10 carries; None for a finding of another rule."""
        if found.rule != A10:
            return None
        return cls(str(found.evidence["path"]), "is_bare" in found.evidence)
