"""Plan: look at the log, decide, and perform what was decided, under the planning lock (`looking`).

A dry run decides by the same facts and shows what it has decided.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tallystick.domain.batches.batch import BatchPlan, BatchStatus, PlannedRange
from tallystick.domain.deciding.decide import PlanFacts, PlanTerms, carried_out_as_frozen, decide
from tallystick.domain.deciding.plan import FrozenPlan, Plan
from tallystick.domain.identities import BatchId, GenerationId, Owner
from tallystick.domain.planning.due import PlanLimits
from tallystick.domain.rules.findings import Finding
from tallystick.domain.rules.waivers import as_accepted, evidence_digest
from tallystick.domain.verdicts import FindingState
from tallystick.domain.window import Window
from tallystick.workflows.committing.publishing import publish, refused_publishes
from tallystick.workflows.place import at
from tallystick.workflows.planning.comparing_file import in_file, told_edits
from tallystick.workflows.planning.looking import LogFacts, Looking, facts_now, under_lock
from tallystick.workflows.planning.observing import answered
from tallystick.workflows.planning.plan_report import PlanReport, tell
from tallystick.workflows.services import Services
from tallystick.workflows.stored.other_feeds import require_root_outside

log = logging.getLogger(__name__)

NEWEST_WINDOW: Final = "No window was given: this is the newest one that is over, %s."
_SHOWN_FIRST: Final = (
    "Batch {} is committed, and the storage has refused to show it: a run publishes it first, and"
    " reads nothing before that."
)


def plan_feed(services: Services, window: Window | None, owner: Owner) -> PlanReport:
    """Freeze a plan for this window, or read it again; its batches are this run's to carry out.

    What the storage has refused to show is shown first: else more and more would be read that no
    reader sees. Raises what `publish` raises for that; BrokerUnavailable, TopicUnknown,
    LedgerUnavailable, StorageUnavailable, ClaimConflict, or LedgerBehind: then nothing changed but
    the finding that says so.
    """
    window = _window_for(services, window)
    edits = told_edits(services, "plan")
    with at(services, "plan"):
        refused = refused_publishes(services)
    for batch_id in refused:
        publish(services, batch_id, owner)
    require_root_outside(services)
    report = _performed(services, window, owner)
    report = replace(report, warnings=(*edits, *report.warnings))
    tell(report)
    return report


def dry_run(services: Services, window: Window | None, owner: Owner | None = None) -> PlanReport:
    """What `plan_feed` would decide now; raises what it raises. Takes no lock, changes nothing.

    `owner` is the run that it is shown for; None when it is shown for none.
    """
    window = _window_for(services, window)
    edits = told_edits(services, "plan")
    require_root_outside(services)
    with at(services, "plan"):
        facts = facts_now(services)
        _require_whole_ledger(facts)
        frozen = services.ledger.newest_plan(services.feed_name, window)
        plan = _decided(facts, frozen, window, owner)
    report = _report(services, window, plan, services.clock.now())
    refused = map(_SHOWN_FIRST.format, refused_publishes(services))
    report = replace(report, warnings=(*edits, *refused, *report.warnings))
    if plan.resumed is None:
        report = replace(report, batches=_named(services, plan, window, {}))
    else:
        # A run publishes what is committed before it plans.
        left = [each for each in plan.resumed.batches if not each.state.is_committed]
        report = replace(report, batches=_plans(left))
    return replace(report, findings=_as_waived(services, report.findings))


def _as_waived(services: Services, found: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings as a run tells them: a waiver holds while the evidence is as it was."""
    waived = {
        each.finding.key: evidence_digest(each.finding.evidence)
        for each in services.ledger.findings(services.feed_name)
        if each.state is FindingState.WAIVED
    }
    same = {each.key for each in found if waived.get(each.key) == evidence_digest(each.evidence)}
    return tuple(as_accepted(found, same))


def _performed(services: Services, window: Window | None, owner: Owner) -> PlanReport:
    """The plan, performed."""

    def perform(looking: Looking) -> PlanReport | None:
        _require_whole_ledger(looking)
        looking.session.describe(in_file(services.feed))
        earlier = looking.session.first_planned_at(owner)
        plan = _decided(looking, looking.session.newest_plan(window), window, owner)
        report = _carried_out(looking, plan, window, owner)
        if report and earlier:
            return replace(report, planned_at=min(earlier, report.planned_at))
        return report

    with at(services, "plan"):
        return under_lock(services, perform)


def _require_whole_ledger(known: LogFacts) -> None:
    """Raise LedgerBehind, or what storage did not answer."""
    if known.behind:
        raise known.behind


def _decided(
    known: LogFacts, frozen: FrozenPlan | None, window: Window | None, owner: Owner | None
) -> Plan:
    """The plan by one look at the log."""
    if carried_out := carried_out_as_frozen(frozen):
        return carried_out
    facts = PlanFacts(
        terms=_terms(known.services),
        window=window,
        owner=owner,
        seen=known.seen,
        now=known.services.clock.now(),
        frozen=frozen,
        accounts=known.accounts,
        staged=known.staged,
    )
    return answered(known.services, decide(facts))


def _carried_out(
    looking: Looking, plan: Plan, window: Window | None, owner: Owner
) -> PlanReport | None:
    """The plan's effects, in their order; None, and there are none, where one can't be had now."""
    services, session = looking.services, looking.session
    if plan.look is None:
        return _report(services, window, plan, services.clock.now())
    opened = looking.record(plan.changes, plan.findings)
    if opened is None:
        return None
    report = _report(services, window, plan, services.clock.now())
    if plan.resumed:
        if plan.findings:
            # The plan may be another run's: without one of its own, this run could forget them.
            session.freeze(None, (), (), owner=owner, lease=services.lease)
        return report
    for each in plan.warnings:
        log.warning("%s", each)
    frozen = session.freeze(
        window,
        _named(services, plan, window, opened),
        [each.plan.batch_id for each in plan.adopted],
        owner=owner,
        lease=services.lease,
    )
    taken = {each.plan.batch_id for each in frozen.adopted}
    # One may have found a living owner in the meantime.
    is_overtaken = len(taken) < len(plan.adopted)
    unfinished = session.accounts().unfinished if is_overtaken else plan.held
    return replace(
        report,
        plan_id=frozen.plan_id,
        planned_at=frozen.planned_at,
        batches=_plans(frozen.batches),
        adopted=_plans(frozen.adopted),
        held=[each for each in unfinished if each.plan.batch_id not in taken],
    )


def _window_for(services: Services, window: Window | None) -> Window | None:
    """The run's window; without one, where the feed lands by windows, the newest that is over."""
    windows = services.feed.windows
    if window or windows is None:
        return window
    end = windows.at_or_before(services.clock.now())
    newest = Window(windows.at_or_before(end - timedelta(microseconds=1)), end)
    log.warning(NEWEST_WINDOW, newest)
    return newest


def _terms(services: Services) -> PlanTerms:
    plan = services.feed.plan
    return PlanTerms(
        services.feed_name,
        services.topic,
        services.root,
        services.isolation,
        PlanLimits(
            plan.max_records_per_run,
            plan.max_records_per_batch,
            plan.max_partitions_per_batch,
            services.most_batches,
        ),
        services.feed.windows,
    )


def _named(
    services: Services,
    plan: Plan,
    window: Window | None,
    opened: Mapping[int, GenerationId],
) -> list[BatchPlan]:
    """The plan's new batches; ranges of logs that it opens have the ids that these were given."""
    if plan.look is None:
        return []
    now, look = services.clock.now(), plan.look.snapshot

    def claimed(planned: PlannedRange) -> PlannedRange:
        partition = planned.offsets.partition.partition
        if planned.generation_id < 0 and partition in opened:
            return PlannedRange(opened[partition], planned.offsets)
        return planned

    return [
        BatchPlan(
            batch_id=BatchId(services.new_id()),
            feed=services.feed_name,
            root=services.root,
            topic=services.topic,
            cluster_id=look.cluster_id,
            topic_id=look.topic_id,
            ordinal=draft.ordinal,
            label=own.from_instant if own else now,
            window=own,
            ranges=tuple(map(claimed, draft.ranges)),
        )
        for draft in plan.batches
        for own in (draft.window or window,)
    ]


def _plans(batches: Sequence[BatchStatus]) -> list[BatchPlan]:
    return [each.plan for each in batches if not each.state.is_over]


def _report(services: Services, window: Window | None, plan: Plan, now: datetime) -> PlanReport:
    """The plan before it is frozen; its new batches are named by whoever shows or freezes them."""
    resumed = plan.resumed
    return PlanReport(
        feed=services.feed_name,
        topic=services.topic,
        window=window,
        plan_id=resumed.plan_id if resumed else None,
        planned_at=resumed.planned_at if resumed else now,
        is_resumed=resumed is not None,
        batches=_plans(resumed.batches) if resumed else (),
        adopted=_plans(resumed.adopted if resumed else plan.adopted),
        held=list(plan.held),
        wanted=plan.wanted,
        findings=plan.findings,
        warnings=plan.warnings,
    )
