"""Moves files out of the readers' directories: replaced ones and strays. All are kept.

Each move is one rename to a place that is never used twice, so it may be repeated by anybody.
"""

from __future__ import annotations

import logging

from tallystick.domain.batch import BatchPlan, CommittedFile
from tallystick.domain.paths import QUARANTINE_NAME, BatchPath
from tallystick.domain.repairing import PutAside
from tallystick.errors import FileMissing, TargetOccupied
from tallystick.workflows.services import Services

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


def put_aside(services: Services, stray: PutAside) -> bool:
    """Move a stray file; False when it is a committed file by now, or is gone."""
    directory, _, name = stray.path.rpartition("/")
    if _is_committed(services, directory, name):
        log.info("%s is a committed file now: it stays.", stray.path)
        return False
    return _move(services, stray.path, stray.quarantine)


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


def _move(services: Services, path: str, target: str) -> bool:
    try:
        services.store.rename_exclusive(path, target)
    except FileMissing:
        return services.store.status(target) is not None
    except TargetOccupied:
        # The place is this file's own: an earlier move was done, and something has come again.
        log.warning("%s is kept already, and there is another file at %s.", target, path)
        return False
    log.info("Moved %s to %s.", path, target)
    return True
