"""Finds what attempts hold that no commit does, in staging and in quarantine. Changes nothing.

Asked before a loss or a cut is recorded: whatever batch an attempt was of, its files may be the
only copy. A batch that was taken apart, or given up, is found by the offsets that it read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tallystick.domain.attempts.last_copies import KeptFiles
from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.paths import StagingPath
from tallystick.domain.identities import AttemptId, BatchId
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.errors import AttemptNotAsked, BatchUnknown
from tallystick.workflows.services import Services
from tallystick.workflows.stored.published_batches import feed_roots
from tallystick.workflows.stored.staged_attempts import (
    batches_in_staging,
    holds_rows,
    landing_plan,
    quarantined_at,
    unproven_in,
)
from tallystick.workflows.stored.unanswered import Unanswered


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """An attempt in staging that holds rows, and is no commit."""

    staging: StagingPath
    plan: BatchPlan | None
    """Its batch as the ledger has it now; None when it has never heard of it."""
    offsets: tuple[OffsetRange, ...] | None
    """What its application was told to read; None when nobody knows."""


def kept_files(services: Services, unanswered: Unanswered) -> tuple[KeptFiles, ...]:
    """All that is held, and where it is, or will be once its batch is over.

    What can't be asked in staging is noted, and may be held. In quarantine, where it was moved for
    that, nobody knows what it holds; the whole of it is named where it can't be listed.
    """
    held = [*_in_staging(services, unanswered), *_in_quarantine(services)]
    return tuple({each.place: each for each in (*unanswered.files, *held)}.values())


def kept_by_others(
    services: Services, plan: BatchPlan, attempt_id: AttemptId, lost: Collection[OffsetRange]
) -> tuple[KeptFiles, ...]:
    """The same without this attempt's own files, for who gives up these offsets of the plan's log.

    Raises AttemptNotAsked for a directory that can't be asked and may hold some of them: nothing is
    lost before.
    """
    own, unanswered = (
        quarantined_at(services, StagingPath.of(plan, attempt_id)),
        Unanswered(services),
    )
    kept = kept_files(services, unanswered)
    for each in unanswered.unasked:
        if any(each.files.may_hold(plan.topic_id, one) for one in lost):
            raise AttemptNotAsked(each.path, each.reason, each.move)
    return tuple(each for each in kept if each.place != own)


def staged_files(services: Services, unanswered: Unanswered) -> Iterator[StagedFiles]:
    """The feed's attempts in staging whose files no commit holds; what can't be asked is noted."""
    for root in feed_roots(services):
        batches: list[BatchId] = []
        with unanswered.noting_all(root):
            batches = batches_in_staging(services, root)
        for batch_id in batches:
            yield from _of_batch(services, root, batch_id, unanswered)


def _of_batch(
    services: Services, root: str, batch_id: BatchId, unanswered: Unanswered
) -> Iterator[StagedFiles]:
    plan: BatchPlan | None = None
    committed_by: AttemptId | None = None
    try:
        status = services.ledger.batch(batch_id)
    except BatchUnknown:
        pass
    else:
        plan, committed_by = status.plan, status.committed_by
        if plan.feed != services.feed_name:
            return
    for staging in unanswered.attempts_of(root, batch_id):
        if staging.attempt_id != committed_by:
            found: StagedFiles | None = None
            with unanswered.noting(staging):
                unanswered.require_ended(staging)
                found = _of_attempt(services, staging, plan)
            if found:
                yield found


def _of_attempt(
    services: Services, staging: StagingPath, plan: BatchPlan | None
) -> StagedFiles | None:
    if not holds_rows(services, staging):
        return None
    landing = landing_plan(services, staging)
    if plan is None and (landing is None or landing.topic != services.topic):
        return None
    return StagedFiles(staging, plan, landing.ranges if landing else None)


def _in_staging(services: Services, unanswered: Unanswered) -> Iterator[KeptFiles]:
    for each in staged_files(services, unanswered):
        if each.plan:
            place = quarantined_at(services, each.staging)
            yield KeptFiles(place, each.plan.topic_id, each.offsets)
        else:
            # No sweep touches what the ledger doesn't know.
            yield KeptFiles(str(each.staging), None, each.offsets)


def _in_quarantine(services: Services) -> Iterator[KeptFiles]:
    for root in feed_roots(services):
        for place, batch_id, landing in unproven_in(services, root):
            try:
                topic_id = services.ledger.batch(batch_id).plan.topic_id if batch_id else None
            except BatchUnknown:
                topic_id = None
            yield KeptFiles(place, topic_id, landing.ranges if landing else None)
