"""What is asked of the ledger for alerts: who was told what, and what has ended since."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from tallystick.domain.identities import FeedName
from tallystick.domain.report.news import Told
from tallystick.domain.rules.stored_finding import StoredFinding


class Telling(Protocol):
    """One recipient's turn: nobody else tells them anything meanwhile."""

    @property
    def told(self) -> Told | None:
        """What they were told last; None before the first time."""
        ...

    def keep(self, told: Told) -> None:
        """Remember it once the turn ends well; a turn that dies leaves everything as it was."""
        ...


class NewsRecord(Protocol):
    """The part of the ledger that remembers what was told; raises what `Ledger` raises."""

    def telling(self, feed: FeedName, recipient: str) -> AbstractContextManager[Telling]:
        """The recipient's turn; waits for another one to end. The ledger is not asked inside it."""
        ...

    def ended_findings(
        self, feed: FeedName, numbers: Collection[int], after: int
    ) -> Mapping[int, StoredFinding]:
        """Those of these numbers, and of larger ones than `after`, that do not stand open."""
        ...

    def newest_finding(self, feed: FeedName) -> int:
        """The largest number that a finding of the feed has; 0 where it never had one."""
        ...
