"""What the attempts of a batch hold that can be committed. Changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tallystick.domain.attempts.last_copies import KeptFiles, ProvablePart, provable_parts
from tallystick.domain.batches.accounting import holes_in, problems_in, unexplained_in
from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import StagingPath
from tallystick.domain.logs.snapshot import BrokerSnapshot
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.domain.rebuilding.deciding import named
from tallystick.errors import FileMissing, ManifestMismatch
from tallystick.workflows.committing.proving import causes_of
from tallystick.workflows.services import Services
from tallystick.workflows.stored.asking_attempts import AskedAttempts
from tallystick.workflows.stored.known_logs import logs_of
from tallystick.workflows.stored.staged_attempts import is_whole, landing_plan, proven_manifest
from tallystick.workflows.stored.staging import StagedFiles, staged_files

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Offer:
    """An attempt's files that may be committed."""

    staging: StagingPath
    manifest: Manifest | None
    """Its proof; None where the files are to be proven now."""
    parts: tuple[ProvablePart, ...] = ()

    @property
    def lost(self) -> list[OffsetRange]:
        """What the files can't prove of the claims."""
        return [lost for part in self.parts for lost in part.lost]


def may_be_committed(
    services: Services,
    status: BatchStatus,
    snapshot: BrokerSnapshot,
    unreadable: Collection[OffsetRange],
) -> bool:
    """True where one of its attempts holds what can be committed, or can't be asked now; and where
    complete files of another batch may hold these offsets, which Spark can't read again.
    """
    asked = AskedAttempts(services)
    staged = asked.attempts_of(status.plan.root, status.plan.batch_id)
    offers = offers_of(services, status.plan, staged, snapshot, asked)
    if offers or asked.is_about(status.plan.batch_id):
        return True
    topic_id = status.plan.topic_id
    for each in staged_files(services, asked):
        if each.staging.batch_id == status.plan.batch_id:
            continue
        with asked.noting(each.staging):
            asked.require_ended(each.staging)
            files = each.files_at(str(each.staging))
            if _hold_any(files, topic_id, unreadable) and _is_sound(services, each):
                return True
    return any(_hold_any(each.files, topic_id, unreadable) for each in asked.notes.values())


def _hold_any(files: KeptFiles, topic_id: str, offsets: Collection[OffsetRange]) -> bool:
    return any(files.may_hold(topic_id, one) for one in offsets)


def _is_sound(services: Services, each: StagedFiles) -> bool:
    """True for complete files that can be read."""
    try:
        services.store.read_back(each.staging.data)
    except (FileMissing, ManifestMismatch):
        return False
    return is_whole(services, each.staging)


def offers_of(
    services: Services,
    plan: BatchPlan,
    staged: Sequence[StagingPath],
    snapshot: BrokerSnapshot,
    asked: AskedAttempts,
) -> list[Offer]:
    """What of the attempts staged there the batch can commit: proofs on record first, then what
    loses least.

    An attempt that can't be asked is noted, and hides no other one.
    """
    proofs: list[Offer] = []
    others: list[Offer] = []
    for each in staged:
        with asked.noting(each):
            asked.require_ended(each)
            if manifest := proven_manifest(services, each):
                if _is_of(manifest, plan):
                    proofs.append(Offer(each, named(manifest, plan, logs_of(services))))
            elif parts := parts_of(services, plan, each, snapshot):
                others.append(Offer(each, None, parts))
    others.sort(key=lambda offer: sum(lost.span for lost in offer.lost))
    return [*proofs, *others]


def _is_of(manifest: Manifest, plan: BatchPlan) -> bool:
    """True when the proof is of exactly what the batch claims now."""
    return (
        {each.offsets for each in manifest.plan.ranges} == {each.offsets for each in plan.ranges}
        and manifest.plan.replaces == plan.replaces
        and (manifest.plan.cluster_id, manifest.plan.topic_id) == (plan.cluster_id, plan.topic_id)
    )


def parts_of(
    services: Services, plan: BatchPlan, staging: StagingPath, snapshot: BrokerSnapshot
) -> tuple[ProvablePart, ...]:
    """What complete files prove of the claims; empty when they can't be committed."""
    landing = landing_plan(services, staging)
    if landing is None or not snapshot.is_of(plan) or not is_whole(services, staging):
        return ()
    try:
        found = services.store.read_back(staging.data)
    except (FileMissing, ManifestMismatch) as error:
        log.warning("%s", error)
        return ()
    if problems_in(plan.ranges, found):
        return ()
    gaps = holes_in(plan.ranges, found)
    rest = [
        unexplained_in(each, causes_of(services, each, plan, landing.isolation)) for each in gaps
    ]
    starts = {number: each.log_start_offset for number, each in snapshot.partitions.items()}
    parts = provable_parts(gaps, rest, starts) or ()
    is_cut = any(each.lost for each in parts)
    return () if (is_cut and plan.is_repair) or not any(each.kept for each in parts) else parts
