"""What a plan has come to, or would come to: the same for a run and for a dry run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.identities import PlanId
from tallystick.domain.report.troubles import troubles_among
from tallystick.domain.rules.findings import Finding
from tallystick.domain.window import Window

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What a plan decided; a dry run gives the same value and has changed nothing."""

    feed: str
    topic: str
    window: Window | None
    plan_id: PlanId | None
    """None for a dry run, but for one that shows a plan which is frozen already."""
    planned_at: datetime
    """When this run first planned, by the ledger's clock: what was found since then is its news."""
    is_resumed: bool
    """True when this window's plan was frozen before, and is read again."""
    batches: Sequence[BatchPlan]
    """New ones; for a resumed plan all that are not over."""
    adopted: Sequence[BatchPlan]
    """Unfinished batches of earlier runs, taken over with what is left of their claims."""
    held: Sequence[BatchStatus]
    """Unfinished batches that other runs hold: left to them, or to a later run if they are dead."""
    wanted: int
    """Offsets that are due and not accounted for; 0 when resumed."""
    findings: Sequence[Finding]
    rescued: Sequence[BatchPlan] = ()
    """Batches that the run has committed of what dead attempts held, before it planned: it
    publishes them."""
    warnings: Sequence[str] = ()
    """What the run does that its operator may not want, said before it is done."""

    @property
    def planned(self) -> int:
        """Offsets in the new batches."""
        return sum(each.span for each in self.batches)

    @property
    def left(self) -> int:
        """Offsets that are due and that the limits of one run leave to the next."""
        return 0 if self.is_resumed else self.wanted - self.planned

    @property
    def all_batches(self) -> tuple[BatchPlan, ...]:
        """What the run carries out, the oldest offsets first; each once."""
        found = {each.batch_id: each for each in (*self.rescued, *self.adopted, *self.batches)}
        return tuple(found.values())


def tell(report: PlanReport) -> None:
    """The plan in plain words, for the task's log."""
    window = f" for window {report.window}" if report.window else ""
    how = "read again" if report.is_resumed else "frozen"
    log.info(
        "Plan %s of feed %s%s %s: %d offsets in %d new batches, %d batches adopted.",
        report.plan_id,
        report.feed,
        window,
        how,
        report.planned,
        len(report.batches),
        len(report.adopted),
    )
    for batch in report.all_batches:
        log.info(
            "Batch %s%s: %d offsets in %d partitions, generation %d.",
            batch.batch_id,
            f" of window {batch.window}" if batch.window != report.window else "",
            batch.span,
            len(batch.ranges),
            batch.ordinal,
        )
    for each in report.held:
        log.info(
            "Batch %s, %d offsets, is left to %s; if that is dead, a run adopts it in %.0f s.",
            each.plan.batch_id,
            each.plan.span,
            each.holder,
            max(0.0, each.lease_seconds_left),
        )
    if report.left:
        log.info("%d due offsets are left to the next run, by the limits of one.", report.left)
    for trouble in troubles_among(report.findings):
        log.warning("Found: %s", trouble)
