"""What is asked of the ledger to plan: what a feed has, and the one transaction of a plan."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.deciding.plan import FrozenPlan
from tallystick.domain.identities import BatchId, FeedName, GenerationId, Owner
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.planning.log_changes import Accounts, LogChanges
from tallystick.domain.rules.findings import Finding
from tallystick.domain.window import Window


@dataclass(frozen=True, slots=True)
class Retirement:
    """With what a feed has ended."""

    commits: int
    digest: bytes | None
    """Of the last link of its chain; None without a commit."""


class PlanningSession(Protocol):
    """The one transaction of a plan; the feed's planning lock is held until it ends."""

    def newest_plan(self, window: Window | None) -> FrozenPlan | None:
        """The newest plan of this window, as its batches stand; None before it.

        A run without a window never has one: it plans anew, after adopting what was left.
        """
        ...

    def first_planned_at(self, owner: Owner) -> datetime | None:
        """When this owner first froze a plan of the feed; None if it never did.

        All tries of a run are one owner: what an earlier one found, and died, is this run's news.
        """
        ...

    def accounts(self) -> Accounts:
        """Generations and unfinished batches of the feed, as of this transaction."""
        ...

    def record_look(
        self, snapshot: BrokerSnapshot, witnessed: Collection[int], doubt: str | None = None
    ) -> int:
        """Keep a look without changes; its number.

        It is the witness of these partitions from here on: it has asked the one before, which held.
        `doubt` says why nothing is proven to be complete up to it.
        """
        ...

    def apply(
        self, changes: LogChanges, snapshot: BrokerSnapshot | None
    ) -> Mapping[int, GenerationId] | None:
        """Cut, lose, set due again, end and open generations, then record the snapshot.

        Returns the ids of opened generations by partition. None, and nothing is changed, where a
        claim that it cuts was committed in the meantime.

        Without a snapshot no broker was asked, or its look is recorded on its own.
        A batch that loses its last range is abandoned. Batches of a closed generation are abandoned
        whatever their lease says.
        """
        ...

    def record_findings(self, findings: Sequence[Finding]) -> None:
        """Keep findings with this very transaction, as `Ledger.record_findings` does."""
        ...

    def freeze(
        self,
        window: Window | None,
        batches: Sequence[BatchPlan],
        adopted: Sequence[BatchId],
        *,
        owner: Owner,
        lease: timedelta,
    ) -> FrozenPlan:
        """Claim the ranges and take over the adopted batches; raises ClaimConflict.

        Each batch has a window of its own, which ends no later than the run's `window`. New and
        adopted batches carry a lease for this owner, so no other run adopts them at once.
        """
        ...


class PlanningRecord(Protocol):
    """What plans read and write."""

    def planning(self, feed: FeedName, topic: str) -> AbstractContextManager[PlanningSession]:
        """One plan's transaction: committed when the block ends well, undone when it raises."""
        ...

    def accounts(self, feed: FeedName) -> Accounts:
        """The same as in planning, without the lock: for a dry run and for reconcile."""
        ...

    def newest_plan(self, feed: FeedName, window: Window | None) -> FrozenPlan | None:
        """The same as in planning, without the lock: for a dry run."""
        ...

    def retire(self, feed: FeedName, *, reason: str, by: str) -> Retirement:
        """End a feed: nobody plans it again. What is on record of it stays.

        Raises RetirementRefused while a batch is not over, or a finding is open, or when it has
        ended before.
        """
        ...
