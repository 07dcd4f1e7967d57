"""Rebuild: enter what readers find published into a ledger that was lost, or is behind.

Storage is read and proven first, then it is decided what to do, then each batch goes the way of
any batch: claimed, begun, verified, committed, published. Each step is a transaction of its own, so
a rebuild that dies is taken up by the next one. Nothing changes in storage; no broker is asked.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tallystick.domain.batch import Attempt, BatchStatus
from tallystick.domain.findings import Finding, FindingCode
from tallystick.domain.generation import GenerationState
from tallystick.domain.identities import AttemptId
from tallystick.domain.log_changes import (
    Accounts,
    EndedGeneration,
    LogChanges,
    OpenedGeneration,
)
from tallystick.domain.manifest import Manifest
from tallystick.domain.paths import BatchPath
from tallystick.domain.ranges import OffsetRange
from tallystick.domain.rebuilding import (
    LedgerFacts,
    LeftOut,
    Logs,
    RebuildPlan,
    named,
    rebuild_plan,
)
from tallystick.errors import AttemptFenced, BatchBusy, LedgerRefused
from tallystick.ports.ledger import PlanningSession
from tallystick.workflows.place import at
from tallystick.workflows.published_batches import feed_roots, unknown_batches
from tallystick.workflows.published_manifests import (
    PublishedManifests,
    read_manifests,
    staged_batches,
)
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)

# What no manifest holds. Said after every rebuild: a ledger that looks whole is no proof of it.
NOT_IN_MANIFESTS = (
    "Findings, waivers and reports of the past: reconcile finds again what is still so.",
    "Losses on record: the next plan asks the broker, then lands what lies between the batches or"
    " records it as lost again.",
    "What a feed was responsible for before the oldest manifest of a log, and after its newest.",
    "Snapshots of the broker, and how far each log was seen to reach.",
    "Fingerprints, and when a batch was last checked: every batch counts as never checked.",
    "Attempts that failed or were at work, plans, owners of leases, and the order of the commits.",
    "Batches that were committed and not published: readers of the directories never saw them, so"
    " their offsets are landed again. Verified ones that lie in staging are named.",
)


@dataclass(frozen=True, slots=True)
class EnteredBatch:
    """A batch that the ledger has from now on, or would have after a rebuild."""

    manifest: Manifest
    notes: tuple[str, ...]
    """What differs between its directory and its manifest, or in how it was entered."""


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What a rebuild did; a dry run gives the same value and has changed nothing."""

    feed: str
    topic: str
    is_dry_run: bool
    entered: Sequence[EnteredBatch]
    opened: Sequence[OpenedGeneration]
    abandoned: Sequence[BatchStatus]
    left_out: Sequence[LeftOut]
    findings: Sequence[Finding]
    staged: Sequence[str]
    """Staging directories of verified attempts whose batches the ledger does not know."""
    not_known: Sequence[str] = NOT_IN_MANIFESTS

    @property
    def is_whole(self) -> bool:
        """True when every published directory is in the ledger."""
        return not self.left_out


def rebuild(
    services: Services,
    roots: Collection[str] = (),
    *,
    dry_run: bool = False,
    damaged: bool = False,
) -> RebuildReport:
    """Every published batch that the ledger does not know is entered, or named with the reason.

    `roots` are directories beside the feed's own below which it has landed. A directory whose files
    do not prove its manifest is left out; with `damaged` it is entered as its manifest says, as the
    lost ledger had it, and reconcile names what is missing. Raises BatchBusy before anything is
    changed when a living run holds a batch that is published, or is in the way of one.
    """
    with at(services, "rebuild"):
        places = feed_roots(services, roots)
        published = read_manifests(services, unknown_batches(services, places))
        wanted = published.readable if damaged else published.proven
        plan = rebuild_plan(_facts(services), published.readable, wanted)
        plan.left_out += [*published.left_out, *(() if damaged else _unproven(published))]
        _require_unheld(services.ledger.accounts(services.feed_name), plan)
        if not dry_run:
            _settle_published(services)
            _perform(services, plan)
        report = _report(services, plan, published, places, dry_run=dry_run)
    _tell(report)
    return report


def _facts(services: Services) -> LedgerFacts:
    ledger, feed = services.ledger, services.feed_name
    lost: dict[tuple[int, int], list[OffsetRange]] = {}
    for account, offsets, _ in ledger.lost(feed):
        lost.setdefault((account.partition.partition, account.ordinal), []).append(offsets)
    return LedgerFacts(
        logs=_logs(services),
        committed=[each.plan for each in ledger.committed_manifests(feed)],
        lost=lost,
        unfinished=ledger.accounts(feed).unfinished,
    )


def _logs(services: Services) -> Logs:
    return {
        (each.partition.partition, each.ordinal): each
        for of_partition in services.ledger.generations(services.feed_name).values()
        for each in of_partition
    }


def _unproven(published: PublishedManifests) -> list[LeftOut]:
    return [
        LeftOut(str(BatchPath.of(each.plan)), each.plan.batch_id, proof.problems)
        for each in published.readable
        if not (proof := published.proofs[each.plan.batch_id]).is_proven
    ]


def _require_unheld(accounts: Accounts, plan: RebuildPlan) -> None:
    """Nobody alive is at work on what is to be finished or given up; raises BatchBusy."""
    owners = {each.plan.batch_id: each.attempt.owner for each in plan.finish}
    concerned = {*owners, *(each.plan.batch_id for each in plan.abandoned)}
    for each in accounts.unfinished:
        batch_id, holder = each.plan.batch_id, each.holder
        if batch_id in concerned and holder and holder != owners.get(batch_id):
            raise BatchBusy(batch_id, holder, each.lease_seconds_left)


def _settle_published(services: Services) -> None:
    """What was committed by a rebuild that died before it said so is published: it lies there."""
    for each in services.ledger.unpublished(services.feed_name):
        target = BatchPath.of(each.plan)
        if services.store.status(target.manifest) is None:
            continue
        there = Manifest.from_json(services.store.read(target.manifest).decode())
        if there.attempt.attempt_id == each.attempt_id:
            services.ledger.mark_published(each.plan.batch_id)


def _perform(services: Services, plan: RebuildPlan) -> None:
    """The plan's steps in their order; what the ledger refuses after all is moved to `left_out`."""
    logs = _logs(services)
    for manifest in plan.finish:
        _carry(services, named(manifest, logs))
    _settle_logs(services, plan)
    logs = _logs(services)
    wanted, plan.enter = plan.enter, []
    for manifest in wanted:
        mapped = named(manifest, logs)
        try:
            _claim(services, mapped)
        except LedgerRefused as error:
            directory = str(BatchPath.of(manifest.plan))
            plan.left_out.append(LeftOut(directory, manifest.plan.batch_id, (error.sentence(),)))
        else:
            _carry(services, mapped)
            plan.enter.append(manifest)
    if plan.findings:
        services.ledger.record_findings(services.feed_name, plan.findings)


def _settle_logs(services: Services, plan: RebuildPlan) -> None:
    """Give up what is in the way, then open every log that the ledger lacks, the oldest first."""
    if not plan.opened and not plan.abandoned:
        return
    with services.ledger.planning(services.feed_name, services.topic) as session:
        _require_unheld(session.accounts(), plan)
        session.apply(LogChanges(cuts=tuple(plan.cuts())), None)
        for ordinal in sorted({each.ordinal for each in plan.opened}):
            _open(session, [each for each in plan.opened if each.ordinal == ordinal])


def _open(session: PlanningSession, opened: Sequence[OpenedGeneration]) -> None:
    newest = session.accounts().generations
    closed = [
        EndedGeneration(
            account.generation_id,
            FindingCode.LEDGER_BEHIND,
            f"a published batch is of generation {each.ordinal}",
        )
        for each in opened
        if (account := newest.get(each.partition.partition))
        and account.state is not GenerationState.CLOSED
    ]
    session.apply(LogChanges(opened=tuple(opened), closed=tuple(closed)), None)


def _claim(services: Services, manifest: Manifest) -> None:
    """The batch's offsets are claimed by a plan of its own; LedgerRefused: nothing has changed."""
    plan = manifest.plan
    with services.ledger.planning(services.feed_name, services.topic) as session:
        session.freeze(plan.window, [plan], [], owner=manifest.attempt.owner, lease=services.lease)


def _carry(services: Services, manifest: Manifest) -> None:
    """The claimed batch to published: the proof is its own, the token is the ledger's."""
    batch_id = manifest.plan.batch_id
    try:
        attempt = _begun(services, manifest, manifest.attempt.attempt_id)
    except AttemptFenced:
        # This ledger has seen newer attempts of the batch, none of which has published it.
        attempt = _begun(services, manifest, AttemptId(services.new_id()))
    services.ledger.record_verified(attempt, replace(manifest, attempt=attempt))
    services.ledger.commit(attempt)
    services.ledger.mark_published(batch_id)
    log.info("Entered batch %s: %d offsets.", batch_id, manifest.plan.span)


def _begun(services: Services, manifest: Manifest, attempt_id: AttemptId) -> Attempt:
    return services.ledger.begin_attempt(
        manifest.plan.batch_id,
        attempt_id=attempt_id,
        owner=manifest.attempt.owner,
        lease=services.lease,
    )


def _report(
    services: Services,
    plan: RebuildPlan,
    published: PublishedManifests,
    places: Collection[str],
    *,
    dry_run: bool,
) -> RebuildReport:
    return RebuildReport(
        feed=services.feed_name,
        topic=services.topic,
        is_dry_run=dry_run,
        entered=[
            EnteredBatch(each, _notes(each, published)) for each in (*plan.finish, *plan.enter)
        ],
        opened=tuple(plan.opened),
        abandoned=tuple(plan.abandoned),
        left_out=sorted(plan.left_out, key=lambda each: each.directory),
        findings=tuple(plan.findings),
        staged=staged_batches(services, places),
    )


def _notes(manifest: Manifest, published: PublishedManifests) -> tuple[str, ...]:
    batch_id = manifest.plan.batch_id
    proof = published.proofs[batch_id]
    notes = (*proof.problems, *proof.notes)
    if not manifest.plan.is_repair and batch_id in published.repairs:
        return (*notes, "what it repaired is not on record: entered as a batch of its own")
    return notes


def _tell(report: RebuildReport) -> None:
    log.info(
        "Feed %s: %d published batches %s, %d left out, %d logs opened, %d batches given up.",
        report.feed,
        len(report.entered),
        "would be entered" if report.is_dry_run else "entered",
        len(report.left_out),
        len(report.opened),
        len(report.abandoned),
    )
    for each in report.left_out:
        log.warning("Left out %s: %s.", each.directory, "; ".join(each.reasons))
    for finding in report.findings:
        log.warning("Found: %s", finding)
