"""What the ledger keeps of findings: how they were stated, confirmed, and ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tallystick.domain.batches.states import FindingState
from tallystick.domain.identities import FeedName
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.waivers import Waiver, shown_digest


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
    waiver: Waiver | None = None
    """The newest one, whatever became of it: it holds while the state is waived."""
    has_waiver_expired: bool = False

    @property
    def digest(self) -> str:
        """Of the evidence as it is here: who accepts the finding names it."""
        return shown_digest(self.finding.evidence)


class FindingsRecord(Protocol):
    """The part of the ledger that remembers findings; raises what `Ledger` raises."""

    def record_findings(self, feed: FeedName, findings: Sequence[Finding]) -> None:
        """Keep findings: one with the same key seen again is confirmed, not doubled.

        Its evidence is the newest look's from then on; all else stays as it was first stated.
        A waived one whose evidence has changed, or whose waiver has expired, is open again.
        """
        ...

    def findings(self, feed: FeedName) -> Sequence[StoredFinding]:
        """The feed's standing findings, open or waived, oldest first."""
        ...

    def all_findings(self, feed: FeedName) -> Sequence[StoredFinding]:
        """Every finding that the feed ever had, oldest first."""
        ...

    def finding(self, finding_id: int) -> StoredFinding | None:
        """One finding, whatever became of it; None if there is none of this number."""
        ...

    def clock(self) -> datetime:
        """The ledger's clock now, by which findings are confirmed."""
        ...

    def close_findings(
        self, feed: FeedName, closed: Mapping[int, str], *, confirmed_before: datetime | None = None
    ) -> int:
        """End findings: by number, what closed each. How many; ended ones stay as they are.

        With an instant of the ledger's clock, excluded, those that were confirmed later stay, too.
        """
        ...

    def waive(self, waiver: Waiver) -> None:
        """Accept an open finding. Raises LedgerRefused for one that is not open, and
        EvidenceChanged for one whose evidence has another digest by now than the waiver.

        An unreadable record is given up by that: recorded as lost in the same transaction.
        """
        ...
