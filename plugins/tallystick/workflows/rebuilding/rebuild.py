"""Rebuild: enter what readers find published into a ledger that was lost, or is behind.

Storage is read and proven first, then it is decided what to do, then it is done, batch by batch: a
rebuild that dies is taken up by the next one. The broker is asked about directories without a
manifest alone. Manifests are written as this ledger has them, and proven batches in staging are
published; nothing else changes in storage.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tallystick.domain.batches.batch import BatchStatus
from tallystick.domain.batches.coverage import Held
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.planning.log_changes import (
    OpenedGeneration,
)
from tallystick.domain.repair.rebuilding import (
    LedgerFacts,
    LeftOut,
    PublishedBatch,
    RebuildPlan,
    committed_in,
    rebuild_plan,
)
from tallystick.domain.rules.findings import Finding
from tallystick.workflows.asking.bare_directories import bare_directories
from tallystick.workflows.asking.entering import enter, finish_published, logs_of, require_unheld
from tallystick.workflows.asking.staged_batches import staged_batches
from tallystick.workflows.place import at
from tallystick.workflows.services import Services
from tallystick.workflows.stored.published_batches import feed_roots, unknown_batches
from tallystick.workflows.stored.published_manifests import (
    PublishedManifests,
    read_manifests,
)
from tallystick.workflows.stored.unanswered import MustAnswer

log = logging.getLogger(__name__)

_UNNAMED: Final = BatchId("(of the ledger)")

# What no manifest holds. Said after every rebuild: a ledger that looks whole is no proof of it.
NOT_IN_MANIFESTS = (
    "Findings, waivers and reports of the past: reconcile finds again what is still so.",
    "Losses on record: the next plan asks the broker, then lands what lies between the batches or"
    " records it as lost again.",
    "What a feed was responsible for before the oldest manifest of a log, and after its newest.",
    "Snapshots of the broker, and how far each log was seen to reach.",
    "Fingerprints, and when a batch was last checked: every batch counts as never checked.",
    "Attempts that failed or were at work, plans, owners of leases, and the order of the commits.",
    "The chain of commits: a new one begins over the manifests as they are now. If one was changed"
    " or removed before, only an older export can show it.",
    "Of a directory that had lost its manifest: what its batch claimed beyond its rows, its window,"
    " and the checksums of its files as they were committed.",
    "If a proven batch in staging had been committed: it is entered and published where nothing"
    " else holds its offsets.",
)


@dataclass(frozen=True, slots=True)
class EnteredBatch:
    """A batch that the ledger has from now on, or would have after a rebuild."""

    batch: PublishedBatch
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
    """Staging directories of proven attempts that stay there: others hold their offsets."""
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
    without_manifest: bool = False,
) -> RebuildReport:
    """Every published batch that the ledger does not know is entered, or named with the reason.

    `roots` are directories beside the feed's own below which it has landed. A directory whose files
    do not prove its manifest is left out; with `damaged` it is entered as its manifest says, as the
    lost ledger had it, and reconcile names what is missing. One that has lost its manifest is left
    out, too; with `without_manifest` it is entered from the offset columns. Raises BatchBusy before
    anything is changed when a living run holds a batch that is published, or is in the way of one.
    """
    with at(services, "rebuild"):
        places = feed_roots(services, roots)
        unknown = unknown_batches(services, places)
        published = read_manifests(services, unknown.told)
        bare = bare_directories(services, unknown.bare, published)
        left_out = bare.left_out(are_wanted=without_manifest)
        if without_manifest:
            published = published.with_bare(services, bare.published, bare.proofs)
        wanted = tuple(published.batches.values()) if damaged else published.proven
        staged = [
            each
            for each in staged_batches(services, places, MustAnswer(services))
            if each.plan.batch_id not in {*published.batches, *bare.batch_ids}
        ]
        facts = _facts(services, (*wanted, *staged))
        readable = {each.batch_id: each for each in (*bare.plans, *published.plans)}
        plan = rebuild_plan(facts, list(readable.values()), wanted, staged, bare.batch_ids)
        plan.left_out += [*published.left_out, *left_out]
        plan.left_out += () if damaged else _unproven(published)
        require_unheld(services.ledger.accounts(services.feed_name), plan)
        if not dry_run:
            finish_published(services)
            bare.write(services, [each.plan.batch_id for each in (*plan.finish, *plan.enter)])
            enter(services, plan)
        report = _report(services, plan, published, dry_run=dry_run)
    _tell(report)
    return report


def _facts(services: Services, batches: Sequence[PublishedBatch]) -> LedgerFacts:
    """What the ledger says of these batches' offsets; the proofs of its history are not read."""
    ledger, feed = services.ledger, services.feed_name
    lost: dict[tuple[int, int], list[OffsetRange]] = {}
    for account, offsets, _ in ledger.lost(feed):
        lost.setdefault((account.partition.partition, account.ordinal), []).append(offsets)
    replaced = {old.batch_id for each in batches for old in each.plan.replaces}
    facts = LedgerFacts(
        logs=logs_of(services),
        committed=frozenset(ledger.committed_among(feed, sorted(replaced))),
        lost=lost,
        unfinished=ledger.accounts(feed).unfinished,
    )
    held = [
        Held(offsets, each.plan.ordinal, _holder(services, each.plan.ordinal, offsets))
        for each in batches
        if not each.plan.is_repair
        for offsets in committed_in(facts, each.plan)
    ]
    return replace(facts, held=held)


def _holder(services: Services, ordinal: int, offsets: OffsetRange) -> BatchId:
    """A batch with a row among these offsets; holes alone are in no file."""
    partition, bounds = offsets.partition.partition, (offsets.from_offset, offsets.until_offset)
    found = services.ledger.batches_holding(services.feed_name, ordinal, partition, *bounds)
    return found[0] if found else _UNNAMED


def _unproven(published: PublishedManifests) -> list[LeftOut]:
    return [
        LeftOut(str(BatchPath.of(each)), each.batch_id, proof.problems)
        for each in published.plans
        if not (proof := published.proofs[each.batch_id]).is_proven
    ]


def _report(
    services: Services,
    plan: RebuildPlan,
    published: PublishedManifests,
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
        staged=[each.directory for each in plan.left_staged],
    )


def _notes(batch: PublishedBatch, published: PublishedManifests) -> tuple[str, ...]:
    plan = batch.plan
    if batch.staged_by:
        return (f"proven in {batch.directory}: committed from there, and published",)
    proof = published.proofs[plan.batch_id]
    notes = (*proof.problems, *proof.notes)
    if published.batches[plan.batch_id].plan.is_repair and not plan.is_repair:
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
    for staged in report.staged:
        log.info("%s stays in staging: others hold its offsets.", staged)
    for each in report.left_out:
        log.warning("Left out %s: %s.", each.directory, "; ".join(each.reasons))
    for finding in report.findings:
        log.warning("Found: %s", finding)
