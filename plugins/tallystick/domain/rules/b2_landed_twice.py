"""B2, landed twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.identities import BatchId
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

B2: Final = Rule(
    code=FindingCode.LANDED_TWICE,
    kind=RuleClass.DUPLICATE,
    compares="offset columns of the files that readers see",
    endings={Level.L2: Ending.LISTING, Level.L3: Ending.FULL_READ},
    verdicts=(Verdict.PROVEN_DUP, Verdict.SUSPECTED),
    not_when="the same numbers in two generations; retracted files",
    remedy=(
        "a stray moves aside; batches that share offsets are landed once more, in place of all of"
        " them"
    ),
    mending=Mending.LAND_AGAIN,
)


@dataclass(frozen=True, slots=True)
class SharedWith:
    """Evidence of what holds committed offsets beside their batch."""

    path: str
    """A stray file; or a directory that a rebuild has left out."""
    kept_batch: BatchId | None = None
    """The batch that the ledger keeps, where a rebuild has told it."""

    @classmethod
    def of(cls, found: Finding) -> SharedWith | None:
        """What a finding B2 carries; None for another rule's, and where committed files share."""
        path, kept = found.evidence.get("path"), found.evidence.get("kept_batch")
        if found.rule != B2 or not isinstance(path, str):
            return None
        return cls(path, BatchId(kept) if isinstance(kept, str) else None)
