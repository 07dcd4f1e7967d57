"""Plan: look at the log, record what changed, adopt what was left behind, claim what is due.

One ledger transaction holds the feed's planning lock around all of it, the look at the broker
included: a snapshot taken before the lock could be older than a rival's commit.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.batch import BatchPlan, BatchStatus
from tallystick.domain.findings import Finding
from tallystick.domain.identities import BatchId, Owner, PlanId
from tallystick.domain.isolating import halves_of_failing
from tallystick.domain.log_changes import Accounts, LogChanges, Observation, log_changes
from tallystick.domain.log_rules import change_findings
from tallystick.domain.planning import PlanLimits, RunPlan, plan_run
from tallystick.domain.progress_rules import frozen_time_index
from tallystick.domain.states import BatchState
from tallystick.domain.window import Window
from tallystick.errors import WindowMissing
from tallystick.ports.ledger import FrozenPlan, PlanningSession
from tallystick.workflows.observing import observe
from tallystick.workflows.place import at
from tallystick.workflows.published_batches import require_ledger_not_behind
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

# A producer's clock may be ahead of ours by this much before its records count as from the future.
_CLOCKS_MAY_DIFFER: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What a plan decided; a dry run gives the same value and has changed nothing."""

    feed: str
    topic: str
    window: Window | None
    plan_id: PlanId | None
    """None for a dry run."""
    planned_at: datetime
    """When this run first planned, by the ledger's clock: what was found since then is its news."""
    is_resumed: bool
    """True when this window's plan was frozen before, and is read again."""
    batches: Sequence[BatchPlan]
    """New ones; for a resumed plan all that are unfinished."""
    adopted: Sequence[BatchPlan]
    """Unfinished batches of earlier runs, taken over with their ranges as they were."""
    held: Sequence[BatchStatus]
    """Unfinished batches that other runs hold: left to them, or to a later run if they are dead."""
    wanted: int
    """Offsets that are due and not accounted for; 0 when resumed."""
    findings: Sequence[Finding]

    @property
    def planned(self) -> int:
        """Offsets in the new batches."""
        return sum(each.span for each in self.batches)

    @property
    def all_batches(self) -> tuple[BatchPlan, ...]:
        """What the run carries out, adopted batches first: they hold the oldest offsets."""
        return (*self.adopted, *self.batches)


def plan_feed(services: Services, window: Window | None, owner: Owner) -> PlanReport:
    """Freeze a plan for this window, or read it again; its batches are this run's to carry out.

    Raises BrokerUnavailable, TopicUnknown, LedgerUnavailable, StorageUnavailable, ClaimConflict, or
    LedgerBehind: then nothing changed but the finding that says so.
    """
    _require_window(services, window)
    require_ledger_not_behind(services)
    with (
        at(services, "plan"),
        services.ledger.planning(services.feed_name, services.topic) as session,
    ):
        earlier = session.first_planned_at(owner)
        frozen = session.open_plan(window)
        if frozen and not _has_failed(frozen):
            report = _resumed(services, window, frozen)
        else:
            report = _looked_at_and_frozen(services, session, window, owner)
    if earlier:
        report = replace(report, planned_at=min(earlier, report.planned_at))
    _tell(report)
    if _is_of_an_older_window(services, report):
        log.warning(
            "The feed says plan.until: now, so what is readable now lands under the past window %s,"
            " however new it is; plan.until: window_end would land a window's own records alone.",
            window,
        )
    return report


def _is_of_an_older_window(services: Services, report: PlanReport) -> bool:
    """True when new records go under a window that is over for longer than it lasted."""
    window = report.window
    if window is None or not report.batches or services.feed.plan.until != "now":
        return False
    length = window.until_instant - window.from_instant
    return services.clock.now() - window.until_instant > length


def _looked_at_and_frozen(
    services: Services, session: PlanningSession, window: Window | None, owner: Owner
) -> PlanReport:
    """The plan after a look at the log; the window's own one where it is still open then."""
    accounts = session.accounts()
    seen = observe(services, accounts)
    changes = log_changes(accounts, seen)
    halves = halves_of_failing(accounts, changes.cuts)
    wanted = replace(changes, cuts=(*changes.cuts, *halves.cuts))
    applied = session.apply(wanted, seen.snapshot)
    cuts = _window_cuts(services, window, seen)
    findings = _findings(services, accounts, applied.changes, seen, cuts)
    session.record_findings(findings)
    still_open = session.open_plan(window)
    if still_open:
        if findings:
            # The plan may be another run's: without one of its own, this run could forget them.
            session.freeze(None, (), (), owner=owner, lease=services.lease)
        return _resumed(services, window, still_open)
    run = _run_plan(services, applied.accounts, seen, cuts, halves.groups)
    frozen = session.freeze(
        window,
        _named(services, run, seen, window),
        adoptable(applied.accounts, owner),
        owner=owner,
        lease=services.lease,
    )
    held = _held(applied.accounts, {each.plan.batch_id for each in frozen.adopted})
    return _fresh(services, window, frozen, held, run, findings)


def _has_failed(frozen: FrozenPlan) -> bool:
    """True when a batch of the plan was tried, and nobody is at it: the log may have moved on."""
    return any(
        each.newest_token > 0 and each.lease_seconds_left <= 0 and not each.state.is_committed
        for each in (*frozen.batches, *frozen.adopted)
        if each.state.is_unfinished
    )


def dry_run(services: Services, window: Window | None) -> PlanReport:
    """What `plan_feed` would decide now; raises what it raises. Takes no lock, changes nothing."""
    _require_window(services, window)
    require_ledger_not_behind(services, is_dry_run=True)
    with at(services, "plan"):
        accounts = services.ledger.accounts(services.feed_name)
        seen = observe(services, accounts)
        changes = log_changes(accounts, seen)
        cuts = _window_cuts(services, window, seen)
        findings = _findings(services, accounts, changes, seen, cuts)
    after = changes.foreseen(accounts)
    run = _run_plan(services, after, seen, cuts, {})
    free = set(adoptable(after, None))
    return PlanReport(
        feed=services.feed_name,
        topic=services.topic,
        window=window,
        plan_id=None,
        planned_at=services.clock.now(),
        is_resumed=False,
        batches=_named(services, run, seen, window),
        adopted=[each.plan for each in accounts.unfinished if each.plan.batch_id in free],
        held=_held(after, free),
        wanted=run.wanted,
        findings=findings,
    )


def _require_window(services: Services, window: Window | None) -> None:
    if window is None and services.feed.plan.until == "window_end":
        raise WindowMissing(
            "window",
            None,
            "a window with a start and an end, because plan.until is window_end",
            where=f"feed {services.feed_name}",
        )


def _window_cuts(
    services: Services, window: Window | None, seen: Observation
) -> Mapping[int, int | None] | None:
    if window is None or services.feed.plan.until == "now":
        return None
    partitions = tuple(seen.snapshot.partitions)
    return services.broker.offsets_at(services.topic, window.until_instant, partitions)


def _findings(
    services: Services,
    accounts: Accounts,
    changes: LogChanges,
    seen: Observation,
    cuts: Mapping[int, int | None] | None,
) -> tuple[Finding, ...]:
    found = change_findings(services.feed_name, accounts.generations, changes, seen)
    if not cuts or not any(cut is not None for cut in cuts.values()):
        return found
    future = services.clock.now() + _CLOCKS_MAY_DIFFER
    after_now = services.broker.offsets_at(services.topic, future, tuple(seen.snapshot.partitions))
    return found + frozen_time_index(
        services.feed_name, accounts.generations, seen.snapshot, cuts=cuts, after_now=after_now
    )


def _run_plan(
    services: Services,
    accounts: Accounts,
    seen: Observation,
    cuts: Mapping[int, int | None] | None,
    groups: Mapping[int, int],
) -> RunPlan:
    plan = services.feed.plan
    return plan_run(
        accounts.generations,
        seen.snapshot,
        isolation=services.isolation,
        cuts=cuts,
        limits=PlanLimits(
            plan.max_records_per_run, plan.max_records_per_batch, plan.max_partitions_per_batch
        ),
        groups=groups,
    )


def adoptable(accounts: Accounts, owner: Owner | None) -> list[BatchId]:
    """Unfinished batches that no living attempt of another owner holds.

    What this very owner holds was planned by a try of this run that died. Committed ones are the
    finisher's.
    """
    return [
        each.plan.batch_id
        for each in accounts.unfinished
        if (each.lease_seconds_left <= 0 or (owner and each.holder == owner))
        and each.state is not BatchState.COMMITTED
    ]


def _held(accounts: Accounts, adopted: Collection[BatchId]) -> list[BatchStatus]:
    return [
        each
        for each in accounts.unfinished
        if each.plan.batch_id not in adopted and each.state is not BatchState.COMMITTED
    ]


def _named(
    services: Services, run: RunPlan, seen: Observation, window: Window | None
) -> list[BatchPlan]:
    label = window.from_instant if window else services.clock.now()
    return [
        BatchPlan(
            batch_id=BatchId(services.new_id()),
            feed=services.feed_name,
            root=services.root,
            topic=services.topic,
            cluster_id=seen.snapshot.cluster_id,
            topic_id=seen.snapshot.topic_id,
            ordinal=draft.ordinal,
            label=label,
            window=window,
            ranges=draft.ranges,
        )
        for draft in run.batches
    ]


def _plans(batches: Sequence[BatchStatus]) -> list[BatchPlan]:
    return [each.plan for each in batches if each.state.is_unfinished]


def _resumed(services: Services, window: Window | None, frozen: FrozenPlan) -> PlanReport:
    return PlanReport(
        feed=services.feed_name,
        topic=services.topic,
        window=window,
        plan_id=frozen.plan_id,
        planned_at=frozen.planned_at,
        is_resumed=True,
        batches=_plans(frozen.batches),
        adopted=_plans(frozen.adopted),
        held=(),
        wanted=0,
        findings=(),
    )


def _fresh(
    services: Services,
    window: Window | None,
    frozen: FrozenPlan,
    held: Sequence[BatchStatus],
    run: RunPlan,
    findings: Sequence[Finding],
) -> PlanReport:
    return PlanReport(
        feed=services.feed_name,
        topic=services.topic,
        window=window,
        plan_id=frozen.plan_id,
        planned_at=frozen.planned_at,
        is_resumed=False,
        batches=_plans(frozen.batches),
        adopted=_plans(frozen.adopted),
        held=held,
        wanted=run.wanted,
        findings=findings,
    )


def _tell(report: PlanReport) -> None:
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
            "Batch %s: %d offsets in %d partitions, generation %d.",
            batch.batch_id,
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
    left = report.wanted - report.planned
    if left > 0 and not report.is_resumed:
        log.info("%d more offsets are due; the budget leaves them to the next run.", left)
    for finding in report.findings:
        log.warning("Found: %s", finding)
