"""A finding as the ledger keeps it: with its number, its state and its newest waiver."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tallystick.domain.identities import Owner
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.waivers import Waiver, WaiverEnding, shown_digest
from tallystick.domain.verdicts import FindingState


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A finding with its history."""

    finding_id: int
    finding: Finding
    first_seen_at: datetime
    last_confirmed_at: datetime
    state: FindingState
    closed_at: datetime | None = None
    closed_by: str | None = None
    """What closed it, in a sentence."""
    closed_in: Owner | None = None
    """The run that did."""
    waiver: Waiver | None = None
    """The newest one, whatever became of it: it holds while the state is waived."""
    has_waiver_expired: bool = False
    waiver_ending: WaiverEnding | None = None

    @property
    def digest(self) -> str:
        """Of the evidence as it is here: who accepts the finding names it."""
        return shown_digest(self.finding.evidence)
