"""Lists what attempts hold that no commit does, in staging and in quarantine. Changes nothing.

Listed before the planning lock is taken, whatever batch an attempt was of: its files may be the
only copy. A batch that was taken apart, or given up, is found by the offsets that it read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from tallystick.domain.attempts.last_copies import KeptFiles
from tallystick.domain.attempts.staged import HeldFiles, Staged
from tallystick.domain.batches.batch import BatchPlan, BatchStatus
from tallystick.domain.batches.paths import StagingPath
from tallystick.domain.identities import AttemptId, BatchId
from tallystick.domain.offsets.ranges import OffsetRange
from tallystick.errors import AttemptNotAsked
from tallystick.workflows.services import Services
from tallystick.workflows.stored.asking_attempts import AskedAttempts, unfinished
from tallystick.workflows.stored.staged_attempts import (
    batches_in_staging,
    holds_rows,
    is_unfinished,
    known_batch,
    landing_plan,
    quarantined_at,
    unproven_in,
)

_NOT_SETTLED: Final = "its files are read and proven by a run before it plans."
_NEVER_SEEN: Final = (
    "this ledger has never heard of its batch: it was restored, or another one lands here."
)


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """An attempt in staging that holds rows, and is no commit."""

    staging: StagingPath
    status: BatchStatus | None
    """Its batch as the ledger has it now; None when it has never heard of it."""
    offsets: tuple[OffsetRange, ...] | None
    """What its application was told to read; None when nobody knows."""

    def files_at(self, place: str) -> KeptFiles:
        """What it may hold, kept there."""
        return KeptFiles(place, self.status.plan.topic_id if self.status else None, self.offsets)


def staged(services: Services) -> Staged:
    """What is there now.

    What nobody can read may be held as well. Of what this ledger never saw, only complete files
    are: others may be another ledger's, whose application is still at it. What was given up is only
    named: the whole of it where quarantine can't be listed.
    """
    tokens, asked = services.ledger.newest_tokens(services.feed_name), AskedAttempts(services)
    held: list[HeldFiles] = []
    named: list[KeptFiles] = []
    for each in staged_files(services, asked):
        path, batch_id, reason = str(each.staging), each.staging.batch_id, _NOT_SETTLED
        with asked.noting(each.staging):
            is_whole = not is_unfinished(services, each.staging)
            if not is_whole and each.status is None:
                named.append(each.files_at(path))
                continue
            if not is_whole:
                reason = unfinished(services, each.staging).sentence()
            elif each.status is None:
                reason = _NEVER_SEEN
            files = each.files_at(quarantined_at(services, each.staging))
            is_asked = is_whole and each.status is not None
            held.append(HeldFiles(path, batch_id, reason, files, can_be_asked=is_asked))
    quarantined = _in_quarantine(services, asked.roots)
    return Staged((*held, *asked.notes.values()), (*named, *quarantined), tokens)


def kept_by_others(
    services: Services, plan: BatchPlan, attempt_id: AttemptId, lost: Collection[OffsetRange]
) -> tuple[KeptFiles, ...]:
    """What other attempts than this one hold, for who gives up these offsets of the plan's log.

    Raises AttemptNotAsked for a directory that can't be read and may hold some of them: nothing is
    lost before.
    """
    own, there = quarantined_at(services, StagingPath.of(plan, attempt_id)), staged(services)
    for each in there.held:
        may_hold = any(each.files.may_hold(plan.topic_id, one) for one in lost)
        if may_hold and not each.can_be_asked:
            raise AttemptNotAsked(each.path, each.reason, each.move)
    return tuple(each for each in there.kept if each.place != own)


def staged_files(services: Services, asked: AskedAttempts) -> Iterator[StagedFiles]:
    """The feed's attempts in staging whose files no commit holds; what can't be asked is noted."""
    for root in asked.roots:
        batches: list[BatchId] = []
        with asked.noting_all(root):
            batches = batches_in_staging(services, root)
        for batch_id in batches:
            yield from _of_batch(services, root, batch_id, asked)


def _of_batch(
    services: Services, root: str, batch_id: BatchId, asked: AskedAttempts
) -> Iterator[StagedFiles]:
    status = known_batch(services, batch_id)
    if status and status.plan.feed != services.feed_name:
        return
    for staging in asked.attempts_of(root, batch_id):
        if status is None or staging.attempt_id != status.committed_by:
            found: StagedFiles | None = None
            with asked.noting(staging):
                found = _of_attempt(services, staging, status)
            if found:
                yield found


def _of_attempt(
    services: Services, staging: StagingPath, status: BatchStatus | None
) -> StagedFiles | None:
    if not holds_rows(services, staging):
        return None
    landing = landing_plan(services, staging)
    if status is None and (landing is None or landing.topic != services.topic):
        return None
    return StagedFiles(staging, status, landing.ranges if landing else None)


def _in_quarantine(services: Services, roots: Iterable[str]) -> Iterator[KeptFiles]:
    for root in roots:
        for place, batch_id, landing in unproven_in(services, root):
            batch = known_batch(services, batch_id) if batch_id else None
            topic_id = batch.plan.topic_id if batch else None
            yield KeptFiles(place, topic_id, landing.ranges if landing else None)
