"""What a rebuild tells: what it has entered and left out, and what no manifest can tell it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from tallystick.domain.batches.batch import BatchStatus
from tallystick.domain.planning.log_changes import OpenedGeneration
from tallystick.domain.rebuilding.plan import LeftOut, PublishedBatch, RebuildPlan
from tallystick.domain.report.troubles import troubles_among
from tallystick.domain.rules.findings import Finding
from tallystick.workflows.services import Services
from tallystick.workflows.stored.published_manifests import PublishedManifests

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
        """True when nothing is left out. What stays in staging by right does not count."""
        return not self.left_out


def report_of(
    services: Services,
    plan: RebuildPlan,
    published: PublishedManifests,
    *,
    dry_run: bool,
) -> RebuildReport:
    """What was done, or would be: `published` are the directories that were read."""
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


def tell(report: RebuildReport) -> None:
    """Log the report: what was left out and found, as warnings."""
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
    for trouble in troubles_among(report.findings):
        log.warning("Found: %s", trouble)
