"""N3, unfinished batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tallystick.domain.batches.states import Verdict
from tallystick.domain.finding_codes import FindingCode, Level
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.rule import Ending, Mending, Rule, RuleClass

N3: Final = Rule(
    code=FindingCode.UNFINISHED_BATCH,
    kind=RuleClass.STALLED,
    compares="batches against the ledger's clock; published directories against their manifests",
    endings={Level.L1: Ending.LEDGER, Level.L2: Ending.LISTING},
    verdicts=(Verdict.UNKNOWN,),
    not_when="a lease runs, for as long as it may; it waits for its turn, or for its rename",
    remedy="the next run adopts, publishes or sweeps it; a repair writes its manifest anew",
    mending=Mending.FINISH,
)


@dataclass(frozen=True, slots=True)
class ManifestAt:
    """Evidence of a published batch whose manifest is gone, or another one."""

    manifest: str
    """Its path."""

    def as_json(self) -> dict[str, object]:
        """As it stands on record."""
        return {"manifest": self.manifest}

    @classmethod
    def of(cls, found: Finding) -> ManifestAt | None:
        """What a finding N3 of a manifest carries; None for any other finding."""
        manifest = found.evidence.get("manifest")
        return cls(manifest) if found.rule == N3 and isinstance(manifest, str) else None
