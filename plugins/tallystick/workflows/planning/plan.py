"""Plan: look at the log, record what changed, adopt what was left behind, claim what is due.

One ledger transaction holds the feed's planning lock around all of it, the look at the broker
included: a snapshot taken before the lock could be older than a rival's commit.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from tallystick.domain.attempts.asked import Asked
from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId, Owner, PlanId
from tallystick.domain.planning.accounts_after import accounts_after
from tallystick.domain.planning.due import PlanLimits, RunPlan, due_offsets, plan_run
from tallystick.domain.planning.isolating import TakenApart, taken_apart
from tallystick.domain.planning.log_changes import Accounts, LogChanges, Observation
from tallystick.domain.planning.log_judgement import log_changes
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.log_findings import change_findings
from tallystick.domain.rules.u1_could_not_tell import unheard_partitions
from tallystick.domain.rules.u1_unasked_attempts import unasked_attempts
from tallystick.domain.window import Window
from tallystick.errors import WindowMissing
from tallystick.ports.ledger import FrozenPlan, PlanningSession
from tallystick.workflows.asking.ask import InDanger, ask_attempts, danger_in, foresee
from tallystick.workflows.place import at
from tallystick.workflows.planning.observing import observe
from tallystick.workflows.planning.windows import (
    ends_of,
    frozen_findings,
    goes_by_windows,
    own_windows,
)
from tallystick.workflows.services import Services
from tallystick.workflows.stored.other_feeds import require_root_outside
from tallystick.workflows.stored.published_batches import require_ledger_not_behind

log = logging.getLogger(__name__)


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
    rescued: Sequence[BatchPlan] = ()
    """Batches that died before their commit, and were committed from what they had landed: the log
    has not all of it any more. This run publishes them."""
    warnings: Sequence[str] = ()
    """What the run does that its operator may not want; said before it is done."""

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
        """What the run carries out, the oldest offsets first."""
        return (*self.rescued, *self.adopted, *self.batches)


def plan_feed(services: Services, window: Window | None, owner: Owner) -> PlanReport:
    """Freeze a plan for this window, or read it again; its batches are this run's to carry out.

    Raises BrokerUnavailable, TopicUnknown, LedgerUnavailable, StorageUnavailable, ClaimConflict, or
    LedgerBehind: then nothing changed but the finding that says so.
    """
    _require_window(services, window)
    require_root_outside(services)
    require_ledger_not_behind(services)
    asked: Asked | None = None
    rescued: list[BatchPlan] = []
    while isinstance(outcome := _planned(services, window, owner, asked), InDanger):
        # Files are read outside of the planning lock; the log is looked at anew afterwards.
        answers = ask_attempts(services, outcome, owner, asked)
        asked = answers.asked
        rescued += answers.committed
    report = replace(outcome, rescued=rescued)
    _tell(report)
    return report


def _planned(
    services: Services,
    window: Window | None,
    owner: Owner,
    asked: Asked | None,
) -> PlanReport | InDanger:
    """The plan; what is in danger instead, and nothing is changed, if nobody was asked for it."""
    with (
        at(services, "plan"),
        services.ledger.planning(services.feed_name, services.topic) as session,
    ):
        earlier = session.first_planned_at(owner)
        frozen = session.open_plan(window)
        if frozen and not _has_failed(frozen):
            report = _resumed(services, window, frozen)
        else:
            accounts = session.accounts()
            seen = observe(services, accounts)
            danger = danger_in(services, accounts, seen)
            if danger.is_to_be_asked(asked):
                return danger
            # Claims that the log has lost are not released, also where an attempt may hold them.
            cuts = danger.changes.cuts
            apart = taken_apart(accounts, seen.snapshot, services.isolation, cuts, asked)
            report = _frozen(services, session, window, owner, danger, asked, apart)
    if earlier:
        report = replace(report, planned_at=min(earlier, report.planned_at))
    return report


def _warnings(
    services: Services, window: Window | None, batches: Sequence[BatchPlan]
) -> tuple[str, ...]:
    """A warning when new records go under a window that is over for longer than it lasted."""
    if window is None or not batches or goes_by_windows(services, window):
        return ()
    length = window.until_instant - window.from_instant
    if services.clock.now() - window.until_instant <= length:
        return ()
    return (
        f"plan.until is 'now': this run puts current records under the old window {window}."
        " Use 'window_end' to keep directories by record time.",
    )


def _frozen(
    services: Services,
    session: PlanningSession,
    window: Window | None,
    owner: Owner,
    look: InDanger,
    asked: Asked | None,
    apart: TakenApart,
) -> PlanReport:
    """The plan after a look at the log; the window's own one where it is still open then."""
    accounts, seen = look.accounts, look.seen
    changes = log_changes(accounts, seen, asked)
    wanted = replace(changes, cuts=(*changes.cuts, *apart.cuts))
    applied = session.apply(wanted, seen.snapshot)
    cuts = ends_of(services, window, seen.snapshot)
    findings = (
        *_findings(services, look, applied.changes, asked),
        *frozen_findings(services, applied.accounts.generations, seen.snapshot, cuts),
    )
    session.record_findings(findings)
    still_open = session.open_plan(window)
    if still_open:
        if findings:
            # The plan may be another run's: without one of its own, this run could forget them.
            session.freeze(None, (), (), owner=owner, lease=services.lease)
        return _resumed(services, window, still_open)
    run = _run_plan(services, applied.accounts, seen, window, cuts, apart.groups)
    batches = _named(services, run, seen, window)
    warnings = _warnings(services, window, batches)
    for each in warnings:
        log.warning("%s", each)
    frozen = session.freeze(
        window,
        batches,
        adoptable(applied.accounts, owner),
        owner=owner,
        lease=services.lease,
    )
    held = _held(applied.accounts, {each.plan.batch_id for each in frozen.adopted})
    return replace(_fresh(services, window, frozen, held, run, findings), warnings=warnings)


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
    require_root_outside(services)
    require_ledger_not_behind(services, is_dry_run=True)
    with at(services, "plan"):
        accounts = services.ledger.accounts(services.feed_name)
        seen = observe(services, accounts)
        danger = danger_in(services, accounts, seen)
        asked = foresee(services, danger) if danger.is_to_be_asked() else None
        changes = log_changes(accounts, seen, asked)
        cuts = ends_of(services, window, seen.snapshot)
        after = accounts_after(accounts, changes, seen.snapshot)
        findings = (
            *_findings(services, danger, changes, asked),
            *frozen_findings(services, after.generations, seen.snapshot, cuts),
        )
        run = _run_plan(services, after, seen, window, cuts, {})
    batches = _named(services, run, seen, window)
    free = set(adoptable(after, None))
    return PlanReport(
        feed=services.feed_name,
        topic=services.topic,
        window=window,
        plan_id=None,
        planned_at=services.clock.now(),
        is_resumed=False,
        batches=batches,
        adopted=[each.plan for each in accounts.unfinished if each.plan.batch_id in free],
        held=_held(after, free),
        wanted=run.wanted,
        findings=findings,
        warnings=_warnings(services, window, batches),
    )


def _require_window(services: Services, window: Window | None) -> None:
    if window is None and services.feed.plan.until == "window_end":
        raise WindowMissing(
            "window",
            None,
            "a window with a start and an end, because plan.until is window_end",
            where=f"feed {services.feed_name}",
        )


def _findings(
    services: Services, look: InDanger, changes: LogChanges, asked: Asked | None
) -> tuple[Finding, ...]:
    feed, known, seen = services.feed_name, look.accounts.generations, look.seen
    return (
        *change_findings(feed, known, changes, seen),
        *unasked_attempts(feed, services.topic, look.at_stake(asked)),
        *unheard_partitions(feed, known, seen.snapshot),
    )


def _run_plan(
    services: Services,
    accounts: Accounts,
    seen: Observation,
    window: Window | None,
    cuts: Mapping[int, int | None] | None,
    groups: Mapping[int, int],
) -> RunPlan:
    plan = services.feed.plan
    limits = PlanLimits(
        plan.max_records_per_run, plan.max_records_per_batch, plan.max_partitions_per_batch
    )
    due = due_offsets(
        accounts.generations,
        seen.snapshot,
        isolation=services.isolation,
        cuts=cuts,
        limits=limits,
    )
    return plan_run(
        accounts.generations,
        due,
        limits=limits,
        groups=groups,
        pieces=own_windows(services, window, due),
    )


def adoptable(accounts: Accounts, owner: Owner | None) -> list[BatchId]:
    """Unfinished batches that no living attempt of another owner holds.

    What this very owner holds was planned by a try of this run that died. Committed ones are the
    finisher's. Files are given up on the word of a person who looked at them just then: nobody
    takes that over.
    """
    return [
        each.plan.batch_id
        for each in accounts.unfinished
        if (each.lease_seconds_left <= 0 or (owner and each.holder == owner))
        and each.state is not BatchState.COMMITTED
        and not each.plan.is_give_up
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
    now = services.clock.now()
    return [
        BatchPlan(
            batch_id=BatchId(services.new_id()),
            feed=services.feed_name,
            root=services.root,
            topic=services.topic,
            cluster_id=seen.snapshot.cluster_id,
            topic_id=seen.snapshot.topic_id,
            ordinal=draft.ordinal,
            label=own.from_instant if own else now,
            window=own,
            ranges=draft.ranges,
        )
        for draft in run.batches
        for own in (draft.window or window,)
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
            "Batch %s%s: %d offsets in %d partitions, generation %d.",
            batch.batch_id,
            f" of window {batch.window}" if batch.window != report.window else "",
            batch.span,
            len(batch.ranges),
            batch.ordinal,
        )
    for batch in report.rescued:
        log.info("Batch %s is committed from what a dead attempt has landed.", batch.batch_id)
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
    for finding in report.findings:
        log.warning("Found: %s", finding)
