"""What the ledger keeps of findings: how they were stated, confirmed, and ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from tallystick.domain.identities import FeedName
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.stored_finding import StoredFinding as StoredFinding
from tallystick.domain.rules.waivers import Waiver


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
