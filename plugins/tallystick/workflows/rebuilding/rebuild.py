"""Rebuild: enter what readers find published into a ledger that was lost, or is behind.

Storage is read and proven first, then it is decided what to do, then it is done, batch by batch: a
rebuild that dies is taken up by the next one. The broker is asked about directories without a
manifest alone. Manifests are written as this ledger has them, and proven batches in staging are
published; nothing else changes in storage.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from tallystick.domain.batches.coverage import Held
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.identities import BatchId
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rebuilding.deciding import committed_in, rebuild_plan
from tallystick.domain.rebuilding.plan import LedgerFacts, LeftOut, PublishedBatch
from tallystick.workflows.place import at
from tallystick.workflows.rebuilding.bare_directories import bare_directories
from tallystick.workflows.rebuilding.entering import (
    enter,
    finish_published,
    require_unheld,
    why_not_from_staging,
)
from tallystick.workflows.rebuilding.rebuild_report import RebuildReport, report_of, tell
from tallystick.workflows.services import Services
from tallystick.workflows.stored.asking_attempts import MustAnswer
from tallystick.workflows.stored.known_logs import logs_of
from tallystick.workflows.stored.published_batches import feed_roots, unknown_batches
from tallystick.workflows.stored.published_manifests import (
    PublishedManifests,
    read_manifests,
)
from tallystick.workflows.stored.staged_batches import staged_batches

_UNNAMED: Final = BatchId("(of the ledger)")


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
        refused = {
            each.plan.batch_id: reason
            for each in staged
            if (reason := why_not_from_staging(services, each))
        }
        plans = list(readable.values())
        plan = rebuild_plan(facts, plans, wanted, staged, bare.batch_ids, refused)
        plan.left_out += [*published.left_out, *left_out]
        plan.left_out += () if damaged else _unproven(published)
        require_unheld(services.ledger.accounts(services.feed_name), plan)
        if not dry_run:
            finish_published(services)
            bare.write(services, [each.plan.batch_id for each in (*plan.finish, *plan.enter)])
            enter(services, plan)
        report = report_of(services, plan, published, dry_run=dry_run)
    tell(report)
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
        replaced=ledger.replacements(feed) if replaced else {},
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
