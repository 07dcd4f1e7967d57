"""Enters published batches into the ledger by the steps of any batch, under their own ids; proven
ones in staging, too.

Claimed, begun, verified, committed, published: each step is a transaction of its own and finds what
an earlier try has done, so whoever is killed on the way is followed by the next rebuild.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from tallystick.domain.batches.batch import Attempt, BatchPlan
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.batches.taking import is_free_for
from tallystick.domain.identities import AttemptId
from tallystick.domain.logs.generation import GenerationState
from tallystick.domain.planning.log_changes import (
    Accounts,
    EndedGeneration,
    LogChanges,
    OpenedGeneration,
)
from tallystick.domain.rebuilding.deciding import named
from tallystick.domain.rebuilding.plan import LeftOut, Logs, PublishedBatch, RebuildPlan
from tallystick.domain.rules.findings import FindingCode
from tallystick.errors import (
    AttemptFenced,
    BatchBusy,
    ClaimConflict,
    FileMissing,
    LedgerRefused,
    StorageRefused,
    VerificationFailed,
)
from tallystick.ledger.planning import PlanningSession
from tallystick.workflows.committing.publishing import publish, write_manifest_anew
from tallystick.workflows.committing.taking_over import (
    commit_again,
    commit_proven,
    require_no_row_taken,
    take_over,
)
from tallystick.workflows.place import counted
from tallystick.workflows.services import Services
from tallystick.workflows.stored.known_logs import logs_of
from tallystick.workflows.stored.published_manifests import manifest_at
from tallystick.workflows.stored.staged_attempts import proven_manifest

log = logging.getLogger(__name__)


def require_unheld(accounts: Accounts, plan: RebuildPlan) -> None:
    """Nobody alive is at work on what is to be finished or given up; raises BatchBusy."""
    owners = {each.plan.batch_id: each.owner for each in plan.finish}
    concerned = {*owners, *(each.plan.batch_id for each in plan.abandoned)}
    for each in accounts.unfinished:
        batch_id, holder, seconds = each.plan.batch_id, each.holder, each.lease_seconds_left
        if batch_id in concerned and not is_free_for(owners.get(batch_id), holder, seconds):
            raise BatchBusy(batch_id, str(holder), seconds)


def finish_published(services: Services) -> None:
    """What was committed by a rebuild that died before it said so is published: it lies there."""
    for each in services.ledger.unpublished(services.feed_name):
        there = manifest_at(services, BatchPath.of(each.plan))
        if isinstance(there, Manifest) and there.attempt.attempt_id == each.attempt_id:
            services.ledger.mark_published(each.plan.batch_id)
            _complete_manifest(services, each.plan)


def enter(services: Services, plan: RebuildPlan) -> None:
    """The plan's steps in their order; what can't be entered after all is moved to `left_out`."""
    finish, plan.finish = plan.finish, []
    logs = logs_of(services)
    for batch in counted(services, "enter", "batches", finish):
        refused = _entered(services, batch, logs, is_claimed=True)
        _note(plan.finish, plan.left_out, batch, refused)
    _close_logs(services, plan)
    wanted, plan.enter = plan.enter, []
    logs = logs_of(services)
    for batch in counted(services, "enter", "batches", wanted):
        refused = _entered(services, batch, logs, is_claimed=False)
        _note(plan.enter, plan.left_out, batch, refused)
    if plan.findings:
        services.ledger.record_findings(services.feed_name, plan.findings)


def _note(
    done: list[PublishedBatch], left_out: list[LeftOut], batch: PublishedBatch, refused: str | None
) -> None:
    if refused:
        left_out.append(LeftOut(batch.directory, batch.plan.batch_id, (refused,)))
    else:
        done.append(batch)


def _entered(
    services: Services, batch: PublishedBatch, logs: Logs, *, is_claimed: bool
) -> str | None:
    """None when the ledger has the batch, else why it has not: nothing of it was changed then."""
    read = _manifest_of(services, batch)
    if isinstance(read, str):
        return read
    if replace(read.plan, replaces=batch.plan.replaces) != batch.plan:
        return "its manifest was changed meanwhile"
    manifest = named(read, batch.plan, logs)
    if refused := why_not_from_staging(services, batch, manifest):
        return refused
    if not is_claimed:
        try:
            _claim(services, manifest)
        except LedgerRefused as error:
            return error.sentence()
    try:
        _carry(services, manifest, staged_by=batch.staged_by)
    except (LedgerRefused, BatchBusy, VerificationFailed) as error:
        if not batch.staged_by:
            raise
        return error.sentence()
    return None


def why_not_from_staging(
    services: Services, batch: PublishedBatch, manifest: Manifest | None = None
) -> str | None:
    """Why a proven batch in staging may not be committed by now; None when it may.

    `manifest` is what was read of it just now, as it is to be entered.
    """
    if batch.staged_by is None or not batch.plan.is_repair:
        return None
    try:
        read = manifest or _manifest_of(services, batch)
        if isinstance(read, str):
            return read
        require_no_row_taken(services, read)
    except (FileMissing, VerificationFailed) as error:
        return error.sentence()
    return None


def _manifest_of(services: Services, batch: PublishedBatch) -> Manifest | str:
    if batch.staged_by is None:
        return manifest_at(services, BatchPath.of(batch.plan))
    staging = StagingPath.of(batch.plan, batch.staged_by)
    return proven_manifest(services, staging) or "its files were changed meanwhile"


def _close_logs(services: Services, plan: RebuildPlan) -> None:
    """Give up what is in the way, then open every log that the ledger lacks, the oldest first."""
    if not plan.opened and not plan.abandoned:
        return
    with services.ledger.planning(services.feed_name, services.topic) as session:
        require_unheld(session.accounts(), plan)
        if session.apply(LogChanges(cuts=tuple(plan.cuts())), None) is None:
            raise ClaimConflict(services.feed_name, "one that is given up here is committed")
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


def _carry(services: Services, manifest: Manifest, *, staged_by: AttemptId | None) -> None:
    """The claimed batch to published: the proof is its own, the token is the ledger's."""
    batch_id = manifest.plan.batch_id
    if staged_by:
        _carry_staged(services, manifest, staged_by)
        return
    try:
        attempt = _begun(services, manifest, manifest.attempt.attempt_id)
    except AttemptFenced:
        # This ledger has seen newer attempts of the batch, none of which has published it.
        attempt = _begun(services, manifest, AttemptId(services.new_id()))
    commit_again(services, attempt, manifest)
    services.ledger.mark_published(batch_id)
    _complete_manifest(services, manifest.plan)
    log.info("Entered batch %s: %d offsets.", batch_id, manifest.plan.span)


def _complete_manifest(services: Services, plan: BatchPlan) -> None:
    """The directory's manifest bears the ids of this ledger: as it is, level 2 would miss it.

    Where that is refused, the batch is entered all the same, and N3 says what is left.
    """
    path = BatchPath.of(plan).manifest
    try:
        write_manifest_anew(services, path)
    except StorageRefused as error:
        log.warning("%s can't be written: %s", path, error)


def _carry_staged(services: Services, manifest: Manifest, staged_by: AttemptId) -> None:
    """The same of a batch that was never shown: it is published by the step of every batch."""
    plan = manifest.plan
    attempt = take_over(services, plan, staged_by, manifest.attempt.owner)
    if attempt is None:
        raise LedgerRefused("make_attempt", f"batch {plan.batch_id} is over")
    commit_proven(services, attempt, manifest)
    publish(services, plan.batch_id)
    log.info("Entered batch %s from staging: %d offsets.", plan.batch_id, plan.span)


def _begun(services: Services, manifest: Manifest, attempt_id: AttemptId) -> Attempt:
    """The attempt; raises LedgerRefused when somebody else has ended the batch meanwhile."""
    attempt = services.ledger.begin_attempt(
        manifest.plan.batch_id,
        attempt_id=attempt_id,
        owner=manifest.attempt.owner,
        lease=services.lease,
    )
    if attempt is None:
        raise LedgerRefused("make_attempt", f"batch {manifest.plan.batch_id} is over")
    return attempt
