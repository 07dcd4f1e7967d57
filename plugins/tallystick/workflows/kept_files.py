"""Finds what attempts hold that no commit does, in staging and in quarantine. Changes nothing.

Asked before a loss or a cut is recorded: whatever batch an attempt was of, its files may be the
only copy. A batch that was taken apart, or given up, is found by the offsets that it read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tallystick.domain.batch import BatchPlan
from tallystick.domain.identities import ID_PATTERN, AttemptId, BatchId
from tallystick.domain.last_copies import KeptFiles
from tallystick.domain.paths import STAGING_NAME, StagingPath
from tallystick.domain.ranges import OffsetRange
from tallystick.errors import BatchUnknown, FileMissing
from tallystick.workflows.published_batches import feed_roots
from tallystick.workflows.services import Services
from tallystick.workflows.staged_attempts import (
    attempts_in,
    holds_rows,
    landing_plan,
    put_aside_at,
    unproven_in,
)


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """An attempt in staging that holds rows, and is no commit."""

    staging: StagingPath
    plan: BatchPlan | None
    """Its batch as the ledger has it now; None when it has never heard of it."""
    offsets: tuple[OffsetRange, ...] | None
    """What its application was told to read; None when nobody knows."""


def kept_files(services: Services) -> tuple[KeptFiles, ...]:
    """All that is held, and where it is, or will be once its batch is over."""
    return (*_in_staging(services), *_in_quarantine(services))


def kept_by_others(
    services: Services, plan: BatchPlan, attempt_id: AttemptId
) -> tuple[KeptFiles, ...]:
    """The same without this attempt's own files."""
    own = put_aside_at(services, StagingPath.of(plan, attempt_id))
    return tuple(each for each in kept_files(services) if each.place != own)


def staged_files(services: Services) -> Iterator[StagedFiles]:
    """The feed's attempts in staging whose files no commit holds."""
    for root in feed_roots(services):
        for batch_id in _batches_in(services, f"{root}/{STAGING_NAME}"):
            yield from _of_batch(services, root, batch_id)


def _of_batch(services: Services, root: str, batch_id: BatchId) -> Iterator[StagedFiles]:
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
    for staging in attempts_in(services, root, batch_id):
        if staging.attempt_id == committed_by or not holds_rows(services, staging):
            continue
        landing = landing_plan(services, staging)
        if plan is None and (landing is None or landing.topic != services.topic):
            continue
        yield StagedFiles(staging, plan, landing.ranges if landing else None)


def _in_staging(services: Services) -> Iterator[KeptFiles]:
    for each in staged_files(services):
        if each.plan:
            place = put_aside_at(services, each.staging)
            yield KeptFiles(place, each.plan.topic_id, each.offsets)
        else:
            # No sweep touches what the ledger doesn't know.
            yield KeptFiles(str(each.staging), None, each.offsets)


def _in_quarantine(services: Services) -> Iterator[KeptFiles]:
    for root in feed_roots(services):
        for place, batch_id, landing in unproven_in(services, root):
            try:
                topic_id = services.ledger.batch(batch_id).plan.topic_id
            except BatchUnknown:
                topic_id = None
            yield KeptFiles(place, topic_id, landing.ranges if landing else None)


def _batches_in(services: Services, directory: str) -> list[BatchId]:
    try:
        entries = services.store.entries(directory)
    except FileMissing:
        return []
    return [BatchId(each.name) for each in entries if ID_PATTERN.fullmatch(each.name)]
