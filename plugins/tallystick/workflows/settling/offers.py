"""What the attempts of a batch hold that can be committed. Changes nothing."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from tallystick.domain.attempts.last_copies import ProvablePart, provable_parts
from tallystick.domain.batches.accounting import holes_in, problems_in, unexplained_in
from tallystick.domain.batches.batch import BatchPlan
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
            has_ended = asked.has_ended(each)
            if manifest := proven_manifest(services, each):
                if _is_of(manifest, plan):
                    proofs.append(Offer(each, named(manifest, plan, logs_of(services))))
            elif parts := parts_of(services, plan, each, snapshot):
                others.append(Offer(each, None, parts))
            if has_ended:
                asked.answered.add(str(each))
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
    range_holes = holes_in(plan.ranges, found)
    rest = [
        unexplained_in(each, causes_of(services, each, plan, landing.isolation))
        for each in range_holes
    ]
    if any(rest):
        # Asked last: what expires meanwhile has no proof any more, and can't be read again.
        snapshot = services.broker.snapshot(plan.topic)
    starts = {number: each.log_start_offset for number, each in snapshot.partitions.items()}
    parts = provable_parts(range_holes, rest, starts) or ()
    is_cut = any(each.lost for each in parts)
    return () if (is_cut and plan.is_repair) or not any(each.kept for each in parts) else parts
