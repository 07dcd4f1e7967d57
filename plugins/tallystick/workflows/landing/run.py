"""A whole run without Airflow: the same steps as the DAG's tasks, in one process.

One batch's trouble does not hold up the others: everything that can be landed is, then the run says
what failed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.identities import AttemptId, BatchId, Owner
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.stored_finding import StoredFinding
from tallystick.domain.window import Window
from tallystick.errors import AttemptFenced, BatchBusy, IngestionError
from tallystick.workflows.committing.publishing import finish, publish
from tallystick.workflows.committing.verification import CommitReport, verify_and_commit
from tallystick.workflows.comparing.second_reading import NOTHING_COMPARED
from tallystick.workflows.landing.checking import check, compare
from tallystick.workflows.landing.land import landed
from tallystick.workflows.landing.sweeping import sweep
from tallystick.workflows.planning.plan import plan_feed
from tallystick.workflows.planning.plan_report import PlanReport
from tallystick.workflows.services import Services
from tallystick.workflows.settling.settle import settle_if_heard

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """What became of one batch in this run."""

    batch_id: BatchId
    commit: CommitReport | None
    """None when it was committed before, is somebody else's now, or failed before its commit."""
    directory: str | None
    """Where it is published; None when it is not."""
    left_to: str | None
    """Who has it now, when another attempt took it; None otherwise."""
    error: IngestionError | None


@dataclass(frozen=True, slots=True)
class RunReport:
    """A run's plan, its batches and its findings."""

    plan: PlanReport
    batches: Sequence[BatchOutcome]
    findings: Sequence[Finding]
    failures: Sequence[IngestionError] = ()
    """What stopped the steps around the batches: finish, sweep, check."""
    on_record: Sequence[StoredFinding] = ()
    """All findings that stand after the run, those from before it too."""

    @property
    def errors(self) -> tuple[IngestionError, ...]:
        """Everything that could not be done."""
        return (*(each.error for each in self.batches if each.error), *self.failures)


def land_feed(services: Services, window: Window | None, owner: Owner) -> RunReport:
    """Plan, land, verify, commit and publish all that is due; then look for findings.

    Raises what `settle_and_plan` raises, and what finishing raises when it may pass. Whatever goes
    wrong in single batches, or after them, is in the report: what was landed must be told all the
    same.
    """
    failures: list[IngestionError] = []
    with noted(failures):
        finish(services, owner)
    if any(error.retry for error in failures):
        raise failures[0]
    plan = settle_and_plan(services, window, owner)
    outcomes = carry_out_all(services, plan.all_batches, owner)
    findings: Sequence[Finding] = ()
    on_record: Sequence[StoredFinding] = ()
    compared = NOTHING_COMPARED
    with noted(failures):
        # First: where a row differs, no other copy of it may be swept.
        compared = compare(services)
    with noted(failures):
        sweep(services)
    with noted(failures):
        findings = check(services, plan.planned_at, owner, compared)
        on_record = services.ledger.findings(services.feed_name)
    return RunReport(plan, outcomes, findings, failures, on_record)


def settle_and_plan(services: Services, window: Window | None, owner: Owner) -> PlanReport:
    """Settle what attempts hold of what the log has lost, then plan by what is left of it.

    Raises what `settle_if_heard` and `plan_feed` raise.
    """
    settled = settle_if_heard(services, owner)
    return replace(plan_feed(services, window, owner), rescued=settled.committed)


@contextmanager
def noted(failures: list[IngestionError]) -> Iterator[None]:
    """An error ends the block, and the story goes on."""
    try:
        yield
    except IngestionError as error:
        log.error("%s", error)
        failures.append(error)


def carry_out_all(
    services: Services, batches: Sequence[BatchPlan], owner: Owner
) -> list[BatchOutcome]:
    """What became of each of them, one after the other."""
    count = len(batches)
    parts = [f"batch {number} of {count}" if count > 1 else "" for number in range(1, count + 1)]
    return [
        carry_out(services.part(part), each.batch_id, owner)
        for part, each in zip(parts, batches, strict=True)
    ]


def carry_out(services: Services, batch_id: BatchId, owner: Owner) -> BatchOutcome:
    """Land, verify, commit and publish one batch, from wherever it stands."""
    commit: CommitReport | None = None
    try:
        with _later() as later:
            attempt_id = AttemptId(services.new_id())
            done = landed(services, batch_id, attempt_id, owner, later=later)
            if done:
                commit = verify_and_commit(services, done.attempt, just_read=done.just_read)
        return BatchOutcome(batch_id, commit, publish(services, batch_id, owner), None, None)
    except (BatchBusy, AttemptFenced) as error:
        log.info("%s", error)
        return BatchOutcome(batch_id, None, None, error.sentence(), None)
    except IngestionError as error:
        log.error("%s", error)
        return BatchOutcome(batch_id, commit, None, None, error)


@contextmanager
def _later() -> Iterator[Callable[[Callable[[], None]], object]]:
    """Takes work that a thread does meanwhile; it has ended with the block, and its errors are
    raised then.
    """
    begun: list[Future[None]] = []
    with ThreadPoolExecutor(1, thread_name_prefix="later") as pool:
        yield lambda work: begun.append(pool.submit(work))
    for each in begun:
        each.result()
