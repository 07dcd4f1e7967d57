"""A plan as a value: what one look at the log changes, and what a run then carries out.

A dry run shows it, and a run performs it: see `decide`. A frozen plan is what the ledger has of
one that was performed: it is read again, and never decided again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from tallystick.domain.batches.batch import BatchStatus
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId, PlanId
from tallystick.domain.planning.due import DraftBatch
from tallystick.domain.planning.log_changes import Accounts, LogChanges, Observation
from tallystick.domain.rules.findings import Finding


@dataclass(frozen=True, slots=True)
class FrozenPlan:
    """The batches that a run is to carry out: its own, and those it adopted."""

    plan_id: PlanId
    planned_at: datetime
    """By the ledger's clock, the plan's transaction: later findings are news."""
    batches: Sequence[BatchStatus]
    adopted: Sequence[BatchStatus]

    @property
    def all_batches(self) -> tuple[BatchStatus, ...]:
        """Both kinds."""
        return (*self.batches, *self.adopted)

    @property
    def is_open(self) -> bool:
        """True while one of its batches can still be landed.

        A committed one is the finisher's: if it can't be published, the window is planned on.
        """
        return any(each.state.is_unfinished for each in self.all_batches)

    @property
    def has_failed(self) -> bool:
        """True when a batch was tried, and nobody is at it: the log may have moved on."""
        return any(
            each.newest_token > 0 and not each.is_held
            for each in self.all_batches
            if each.state.is_unfinished
        )

    def where(self, accounts: Accounts, committed: Collection[BatchId] = ()) -> FrozenPlan:
        """The plan as the ledger would have it with these accounts, and these batches committed."""
        unfinished = {each.plan.batch_id: each for each in accounts.unfinished}

        def now(batch: BatchStatus) -> BatchStatus:
            batch_id = batch.plan.batch_id
            if not batch.state.is_unfinished:
                return batch  # it may have been committed since the accounts were read
            if batch_id in unfinished:
                return unfinished[batch_id]
            is_committed = batch_id in committed
            return replace(
                batch, state=BatchState.COMMITTED if is_committed else BatchState.ABANDONED
            )

        return replace(self, batches=[*map(now, self.batches)], adopted=[*map(now, self.adopted)])


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done, in this order: changes and findings recorded, then batches frozen."""

    look: Observation | None = None
    """What was seen of the log; None for a plan that is read again, and asks for no look."""
    resumed: FrozenPlan | None = None
    """The window's own plan, where one of its batches can still be landed after the changes: it is
    carried out, and nothing new is planned."""
    changes: LogChanges = field(default_factory=LogChanges)
    findings: tuple[Finding, ...] = ()
    batches: tuple[DraftBatch, ...] = ()
    """New ones. A range of a log that the changes open has no generation id yet."""
    adopted: tuple[BatchStatus, ...] = ()
    """Unfinished batches of earlier runs, taken over with what is left of their claims."""
    held: tuple[BatchStatus, ...] = ()
    """Unfinished batches that other runs hold: left to them, or to a later run if they are dead."""
    wanted: int = 0
    """Offsets that are due and not accounted for; 0 when resumed."""
    warnings: tuple[str, ...] = ()
    """What the run does that its operator may not want."""
