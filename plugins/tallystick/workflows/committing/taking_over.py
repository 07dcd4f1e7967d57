"""Takes over the files of an attempt that died, by the ledger's rules: the newest token commits.

Whoever is killed on the way leaves the files in the directory of one attempt: the next one finds
them there.
"""

from __future__ import annotations

from dataclasses import replace

from tallystick.domain.attempts.last_copies import KeptFiles
from tallystick.domain.batches.batch import Attempt, BatchPlan, CommittedFile
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.batches.replacing import rows_given_up
from tallystick.domain.identities import AttemptId, BatchId, Owner
from tallystick.errors import AttemptFenced, VerificationFailed
from tallystick.ledger.publishing import CommittedBatch
from tallystick.workflows.committing.failing import failing
from tallystick.workflows.services import Services
from tallystick.workflows.stored.staging import kept_by_others
from tallystick.workflows.stored.unexplained import unexplained_paths


def take_over(services: Services, plan: BatchPlan, old: AttemptId, owner: Owner) -> Attempt | None:
    """An attempt that may commit, with the old one's files in its staging directory.

    It is the old one itself while that is the newest, or while the ledger never saw it; else a new
    one, to which the directory is moved. None when the batch is over by now. Raises BatchBusy.
    """
    try:
        return _begun(services, plan, old, owner)
    except AttemptFenced:
        attempt = _begun(services, plan, AttemptId(services.new_id()), owner)
    if attempt:
        place = StagingPath.of(plan, attempt.attempt_id)
        with failing(services, attempt):
            services.store.rename_exclusive(str(StagingPath.of(plan, old)), str(place))
    return attempt


def _begun(
    services: Services, plan: BatchPlan, attempt_id: AttemptId, owner: Owner
) -> Attempt | None:
    return services.ledger.begin_attempt(
        plan.batch_id, attempt_id=attempt_id, owner=owner, lease=services.lease
    )


def commit_proven(services: Services, attempt: Attempt, manifest: Manifest) -> None:
    """Commit a proof that was made before: the proof is its own, the token is the attempt's.

    Raises VerificationFailed when a repair would take rows away by now: the attempt has failed.
    """
    with failing(services, attempt):
        require_no_row_taken(services, manifest)
        commit_again(services, attempt, manifest)


def commit_again(services: Services, attempt: Attempt, manifest: Manifest) -> None:
    """Commit what was committed once, and is shown to readers: nothing is asked of its files."""
    kept = kept_beside(services, attempt, manifest)
    services.ledger.record_verified(attempt, replace(manifest, attempt=attempt))
    services.ledger.commit(attempt, kept)


def kept_beside(services: Services, attempt: Attempt, manifest: Manifest) -> tuple[KeptFiles, ...]:
    """Files of other attempts, if the repair gives rows up: they may be the only copy."""
    old = {key: each.manifest for key, each in _replaced(services, manifest).items()}
    lost = [one for each in rows_given_up(manifest, old) for one in each.offsets]
    return kept_by_others(services, manifest.plan, attempt.attempt_id, lost) if lost else ()


def _replaced(services: Services, manifest: Manifest) -> dict[BatchId, CommittedBatch]:
    return {
        each: old
        for each in {file.batch_id for file in manifest.plan.replaces}
        if (old := services.ledger.committed_batch(each))
    }


def require_no_row_taken(services: Services, manifest: Manifest) -> None:
    """Looked at last, not when the repair was planned: a file may have been put back since.

    Raises VerificationFailed when a file that is there holds rows that the repair does not land, or
    what is unexplained may hold them.
    """
    replaced = _replaced(services, manifest)
    problems: list[str] = []
    missing: set[CommittedFile] = set()
    for given_up in rows_given_up(manifest, {key: old.manifest for key, old in replaced.items()}):
        old = replaced[given_up.file.batch_id]
        # Data move from staging to the target, never back: looked at in this order.
        for directory in (StagingPath.of(old.plan, old.attempt_id).data, BatchPath.of(old.plan)):
            path = f"{directory}/{given_up.file.name}"
            if services.store.status(path) is not None:
                rows = given_up.unclaimed.union(given_up.cleaned)
                problems.append(
                    f"{path} is there, and holds rows that the log has no more:"
                    f" {given_up.partition}: {rows.described()}"
                )
                break
        else:
            missing.add(given_up.file)
    problems += (
        f"{path} is unexplained, and may hold rows that the log has no more"
        for path in unexplained_paths(services, replaced.values(), missing)
    )
    if problems:
        raise VerificationFailed(manifest.plan.batch_id, problems)
