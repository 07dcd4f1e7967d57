"""Moves committed files back that somebody has moved by hand, on an operator's word."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.paths import BatchPath
from tallystick.domain.batches.states import BatchState
from tallystick.domain.identities import BatchId
from tallystick.domain.repair.plan import MovedFile
from tallystick.domain.rules.findings import FindingCode
from tallystick.domain.rules.storage_rules import is_read
from tallystick.errors import FileMissing, IngestionError
from tallystick.ports.findings import StoredFinding
from tallystick.ports.ledger import CommittedBatch
from tallystick.workflows.committing.publishing import write_manifest_anew
from tallystick.workflows.landing.run import noted
from tallystick.workflows.place import at
from tallystick.workflows.services import Services
from tallystick.workflows.stored.moved_files import look_for, place_of

log = logging.getLogger(__name__)


def moved_back(
    services: Services, standing: Sequence[StoredFinding], troubles: list[IngestionError]
) -> dict[int, str]:
    """Move files back that these findings miss; the findings that have ended by it.

    Whole directories in one step, where nothing of theirs is left in the old place.
    """
    asked: dict[CommittedFile, list[int]] = {}
    for each in standing:
        batch, name = (each.finding.evidence.get(key) for key in ("batch", "file"))
        if each.finding.code is FindingCode.COMMITTED_FILE_MISSING and batch and name:
            file = CommittedFile(BatchId(str(batch)), str(name))
            asked.setdefault(file, []).append(each.finding_id)
    ids = sorted({each.batch_id for each in asked})
    batches = [batch for each in ids if (batch := services.ledger.committed_batch(each))]
    closed: dict[int, str] = {}
    for batch in batches:
        with noted(troubles), at(services, "repair"):
            replaced = services.ledger.replacements(services.feed_name)
            gone = [
                each
                for each in asked
                if each.batch_id == batch.plan.batch_id
                and each not in replaced
                and services.store.status(f"{place_of(batch)}/{each.name}") is None
            ]
            for file, moved in look_for(services, [batch], gone).elsewhere.items():
                with noted(troubles):
                    _move(services, batch, moved)
                    words = f"{moved.path} was moved back to {moved.target}."
                    closed |= dict.fromkeys(asked[file], words)
    return closed


def _move(services: Services, batch: CommittedBatch, moved: MovedFile) -> None:
    """The file to its place, with the whole directory where that lies elsewhere as it was."""
    source, target = (each.rpartition("/")[0] for each in (moved.path, moved.target))
    if services.store.status(target) is None and _is_all_of(services, source, batch):
        services.store.rename_exclusive(source, target)
    elif services.store.status(moved.target) is None:
        services.store.rename_exclusive(moved.path, moved.target)
    if batch.state is BatchState.PUBLISHED:
        write_manifest_anew(services, BatchPath.of(batch.plan).manifest)
    log.info("Moved %s back to %s.", moved.path, moved.target)


def _is_all_of(services: Services, directory: str, batch: CommittedBatch) -> bool:
    """True when readers find nothing in the directory but files of the batch."""
    try:
        names = {each.name for each in services.store.entries(directory) if is_read(each.name)}
    except FileMissing:
        return False
    return names <= {each.name for each in batch.manifest.files}
