"""What a plan has come to, or would come to: the same for a run and for a dry run."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.identities import PlanId
from tallystick.domain.report.troubles import troubles_among
from tallystick.domain.rules.findings import Finding
from tallystick.domain.window import Window

log = logging.getLogger(__name__)

_MOST_RANGES = 20


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
    for level, words in plan_lines(report):
        log.log(level, "%s", words)


def plan_lines(report: PlanReport) -> Iterator[tuple[int, str]]:
    """Each line with the level at which it is logged. A dry run's batches have numbers alone."""
    window = f" for window {report.window}" if report.window else ""
    plan = "A dry run" if report.plan_id is None else f"Plan {report.plan_id}"
    due = "it is read again" if report.is_resumed else f"{report.wanted} offsets are due"
    yield (
        logging.INFO,
        f"{plan} of feed {report.feed}{window}: {due}; {report.planned} offsets in"
        f" {len(report.batches)} new batches, {len(report.adopted)} batches adopted.",
    )
    for number, batch in enumerate(report.all_batches, start=1):
        name = number if report.plan_id is None else batch.batch_id
        under = f" under window {batch.window}" if batch.window else ""
        ranges = "; ".join(str(each.offsets) for each in batch.ranges[:_MOST_RANGES])
        left_out = len(batch.ranges) - _MOST_RANGES
        more = f"; and {left_out} more" if left_out > 0 else ""
        yield (
            logging.INFO,
            f"Batch {name}{under}: {batch.span} offsets in {len(batch.ranges)} partitions,"
            f" generation {batch.ordinal}: {ranges}{more}",
        )
    for each in report.held:
        yield (
            logging.INFO,
            f"Batch {each.plan.batch_id}, {each.plan.span} offsets, is left to {each.holder}; if"
            f" that is dead, a run adopts it in {max(0.0, each.lease_seconds_left):.0f} s.",
        )
    if report.left:
        words = f"{report.left} due offsets are left to the next run, by the limits of one."
        yield logging.INFO, words
    for trouble in troubles_among(report.findings):
        yield logging.WARNING, f"Found: {trouble}"
