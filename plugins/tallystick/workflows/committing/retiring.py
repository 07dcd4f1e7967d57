"""Moves files out of the readers' directories: replaced ones and strays. All are kept.

Each move is one rename to a place that is never used twice, so it may be repeated by anybody.
"""

from __future__ import annotations

import logging

from tallystick.domain.batches.batch import BatchPlan, CommittedFile
from tallystick.domain.batches.paths import QUARANTINE_NAME, BatchPath
from tallystick.domain.repair.quarantining import Quarantine
from tallystick.errors import FileMissing, TargetOccupied
from tallystick.workflows.services import Services
from tallystick.workflows.stored.other_feeds import batch_of_another

log = logging.getLogger(__name__)


def kept_at(repair: BatchPlan, file: CommittedFile) -> str:
    """Where a replaced file is kept: named by the repair that took its place."""
    return (
        f"{repair.root}/{QUARANTINE_NAME}/{repair.feed}/replaced-by-{repair.batch_id}"
        f"/batch={file.batch_id}/{file.name}"
    )


def retire_replaced(services: Services, repair: BatchPlan) -> None:
    """Move the files that a committed repair replaces; those that are missing anyway are passed.

    Done before the repair's own directory is published: a reader of the plain directories may miss
    these rows for a moment, and never sees them twice.
    """
    for file in repair.replaces:
        old = services.ledger.committed_batch(file.batch_id)
        if old is None:
            continue
        _move(services, f"{BatchPath.of(old.plan)}/{file.name}", kept_at(repair, file))


def quarantine_directory(services: Services, directory: str, target: str) -> str | None:
    """Move a directory that may hold the only copy of something; where it is kept, None if gone."""
    return _move(services, directory, target)


def quarantine_stray(services: Services, stray: Quarantine) -> str | None:
    """Move a stray file; where it is kept, None when it is a committed file by now, or is gone.

    None as well for a file of another feed's batch, whatever the finding says.
    """
    directory, _, name = stray.path.rpartition("/")
    other = batch_of_another(services, directory)
    if other:
        log.warning("%s is of feed %s: it stays.", stray.path, other.feed)
        return None
    if _is_batch(services, stray.path):
        log.info("%s is a batch by now, or says that it is one: it stays.", stray.path)
        return None
    if _is_committed(services, directory, name):
        log.info("%s is a committed file now: it stays.", stray.path)
        return None
    return _move(services, stray.path, stray.quarantine)


def _is_batch(services: Services, directory: str) -> bool:
    """True for a batch's directory that the ledger knows, or that has a manifest."""
    try:
        path = BatchPath.parse(directory)
    except ValueError:
        return False
    is_known = services.ledger.committed_batch(path.batch_id) is not None
    return is_known or services.store.status(path.manifest) is not None


def _is_committed(services: Services, directory: str, name: str) -> bool:
    """True when readers are to find this file here; asked last: its batch may be published now."""
    try:
        path = BatchPath.parse(directory)
    except ValueError:
        return False
    batch = services.ledger.committed_batch(path.batch_id)
    if batch is None or str(BatchPath.of(batch.plan)) != directory:
        return False
    replaced = services.ledger.replacements(services.feed_name)
    names = {each.name for each in batch.manifest.files}
    return name in names and CommittedFile(path.batch_id, name) not in replaced


def _move(services: Services, path: str, target: str) -> str | None:
    """Where the file is kept; None if it is in neither place.

    A file that came again after an earlier move gets a place beside the first.
    """
    place, number = target, 1
    while True:
        try:
            services.store.rename_exclusive(path, place)
        except FileMissing:
            return target if services.store.status(target) is not None else None
        except TargetOccupied:
            if services.store.status(path) is None:
                return target
            number += 1
            place = f"{target}.{number}"
        else:
            log.info("Moved %s to %s.", path, place)
            return place
