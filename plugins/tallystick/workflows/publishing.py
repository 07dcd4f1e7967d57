"""Publish, finish, sweep: what comes after the commit, repeatable by anybody at any time.

1. A rename never overwrites and never nests; a foreign directory stops the story.
2. The sweeper deletes only what the ledger says can never be committed, or has been published.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from hashlib import sha256

from tallystick.domain.identities import BatchId
from tallystick.domain.paths import BatchPath, StagingPath
from tallystick.domain.states import BatchState
from tallystick.errors import (
    BatchUnknown,
    FileMissing,
    IngestionError,
    ManifestMismatch,
    PublishedDataMissing,
    TargetOccupied,
)
from tallystick.ports.ledger import CommittedBatch
from tallystick.workflows.place import at
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


def publish(services: Services, batch_id: BatchId) -> str:
    """The directory in which readers find the batch, from now on at the latest.

    Raises BatchUnknown before the commit, TargetOccupied, ManifestMismatch or PublishedDataMissing.
    """
    with at(services, "publish", batch_id):
        batch = services.ledger.committed_batch(batch_id)
        if batch is None:
            raise BatchUnknown(batch_id)
    target = BatchPath.of(batch.plan)
    if batch.state is not BatchState.PUBLISHED:
        with at(services, "publish", batch.plan):
            _move(services, batch, target)
            services.ledger.mark_published(batch_id)
        log.info("Batch %s is published: %s", batch_id, target)
    return str(target)


def _move(services: Services, batch: CommittedBatch, target: BatchPath) -> None:
    """Bring the data to its target once, whoever did it."""
    source = StagingPath.of(batch.plan, batch.attempt_id).data
    try:
        services.store.rename_exclusive(source, str(target))
    except TargetOccupied as occupied:
        # The target's manifest decides. A directory in staging says nothing: a late writer of this
        # very attempt makes it again with nothing but its manifest inside.
        try:
            _require_ours(services, batch, target)
        except ManifestMismatch:
            if services.store.status(source) is None:
                raise
            raise occupied from None
    except FileMissing as error:
        if services.store.status(str(target)) is None:
            raise PublishedDataMissing(batch.plan.batch_id, source, str(target)) from error
        _require_ours(services, batch, target)


def _require_ours(services: Services, batch: CommittedBatch, target: BatchPath) -> None:
    """The directory at the target holds the committed manifest, byte for byte."""
    try:
        found = services.store.read(target.manifest)
    except FileMissing as error:
        raise ManifestMismatch(
            target.manifest, batch.manifest_sha256.hex(), "no manifest"
        ) from error
    digest = sha256(found).digest()
    if digest != batch.manifest_sha256:
        raise ManifestMismatch(target.manifest, batch.manifest_sha256.hex(), digest.hex())


def finish(services: Services) -> Sequence[str]:
    """Roll forward every batch that is committed and not published; the directories.

    A batch that can't be published does not hold up the others: the first such error is raised at
    the end, further ones are told in the log. One that may pass is raised at once: it would meet
    the others too.
    """
    with at(services, "finish"):
        waiting = services.ledger.unpublished(services.feed_name)
    finished: list[str] = []
    first: IngestionError | None = None
    for batch in waiting:
        try:
            finished.append(publish(services, batch.plan.batch_id))
        except IngestionError as error:
            if error.retry:
                raise
            if first:
                log.error("%s", error)
            first = first or error
    if first:
        raise first
    return finished


def sweep(services: Services) -> int:
    """Delete the staging directories of attempts that can never commit any more; how many.

    The ledger says in one answer that the token is dead and that the attempt did not commit; a dead
    token can't come to life again, so deleting afterwards is safe.
    """
    with at(services, "sweep"):
        dead = services.ledger.dead_attempts(services.feed_name)
    for each in dead:
        attempt = each.attempt
        staging = StagingPath(each.root, attempt.batch_id, attempt.attempt_id)
        with at(services, "sweep", attempt.batch_id):
            services.store.delete(str(staging))
            services.store.delete_empty(staging.batch_directory)
            services.ledger.mark_swept(attempt.attempt_id)
        log.info("Swept %s.", staging)
    return len(dead)
