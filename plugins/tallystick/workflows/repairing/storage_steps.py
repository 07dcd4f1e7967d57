"""What a repair does in storage beside its batches: strays are moved, committed files moved back,
lost manifests written anew.

Each step is decided before, and passes where it is done already: whoever repeats it after a crash
ends where the first would have. Nothing is done for a finding that has ended meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tallystick.domain.batches.paths import BatchPath, directory_of
from tallystick.domain.batches.states import BatchState
from tallystick.domain.batches.stored_file import is_read
from tallystick.domain.repair.moving_back import MoveBack
from tallystick.domain.repair.plan import StorageSteps
from tallystick.domain.repair.quarantining import Quarantine
from tallystick.domain.rules.a10_ledger_behind import UnknownBatch
from tallystick.domain.rules.evidence import path_in
from tallystick.domain.rules.findings import Finding
from tallystick.errors import FileMissing, IngestionError
from tallystick.ports.batches import CommittedBatch
from tallystick.ports.proofs import FileState
from tallystick.workflows.committing.publishing import write_manifest_anew
from tallystick.workflows.committing.retiring import quarantine_stray
from tallystick.workflows.landing.run import noted
from tallystick.workflows.place import at
from tallystick.workflows.services import Services
from tallystick.workflows.stored.moved_files import place_of
from tallystick.workflows.stored.published_batches import why_behind
from tallystick.workflows.stored.stray_rows import is_file, is_in_place, stray_at

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StepsDone:
    """What was done in storage."""

    quarantined: Sequence[Quarantine]
    """Each with the place where it is kept."""
    closed: Mapping[int, str]
    """Findings that ended, each with what ended it."""
    failures: Sequence[IngestionError]


def steps_done(
    services: Services,
    steps: StorageSteps,
    standing: Mapping[int, Finding],
    *,
    are_named: bool,
) -> StepsDone:
    """Perform the steps whose findings still stand. One that fails holds up no other kind."""
    failures: list[IngestionError] = []
    strays = [each for each in steps.quarantined if each.finding_id in standing]
    moved = list(_strays_moved(services, strays, standing, failures, are_named=are_named))
    places = {each.path: each.quarantine for each in moved}
    closed = {
        number: f"{path} was moved to {places[path]}."
        for number, found in standing.items()
        if (stray := path_in(found.evidence))
        for path in (stray, directory_of(stray))
        if path in places
    }
    for back in steps.move_back:
        with noted(failures), at(services, "repair"):
            if back.finding_id in standing and _is_moved_back(services, back):
                closed[back.finding_id] = f"{back.path} was moved back to {back.target}."
    for lost in steps.write_manifests:
        with noted(failures), at(services, "repair"):
            if lost.finding_id in standing and write_manifest_anew(services, lost.path):
                closed[lost.finding_id] = f"{lost.path} is there again, as the ledger has it."
    return StepsDone(moved, closed, failures)


def _strays_moved(
    services: Services,
    strays: Sequence[Quarantine],
    standing: Mapping[int, Finding],
    failures: list[IngestionError],
    *,
    are_named: bool,
) -> Iterator[Quarantine]:
    """Stops at the first retryable error: it would hit the next stray too.

    What was safe to move when it was decided is looked at again: batches were landed since.
    """
    # A bare directory is what the ledger is behind for, and it was named.
    bare = [each for each in strays if UnknownBatch.of(standing[each.finding_id])]
    may_move = len(bare) == len(strays) or _may_move(services, failures)
    for each in strays if may_move else bare:
        with noted(failures), at(services, "repair"):
            if not are_named and stray_at(services, each.path).may_be_only_copy:
                log.warning("%s may be the only copy of its rows: it stays.", each.path)
                continue
            place = quarantine_stray(services, each)
            if place:
                yield Quarantine(each.path, place, each.finding_id)
        if any(error.retry for error in failures):
            return


def _may_move(services: Services, failures: list[IngestionError]) -> bool:
    """False while the ledger is behind, or nobody can tell: a stray may be a forgotten batch's."""
    may_move = False
    with noted(failures):
        behind = why_behind(services)
        may_move = behind is None
        if behind:
            log.warning("No stray is moved: %s", behind)
    return may_move


def _is_moved_back(services: Services, step: MoveBack) -> bool:
    """True when the committed file is in its place now: the whole directory is moved in one rename
    where nothing of it is left in the old place.
    """
    batch = services.ledger.committed_batch(step.file.batch_id)
    is_replaced = step.file in services.ledger.replacements(services.feed_name)
    if batch is None or is_replaced or f"{place_of(batch)}/{step.file.name}" != step.target:
        return False
    [file] = [each for each in batch.manifest.files if each.name == step.file.name]
    source, target = directory_of(step.path), directory_of(step.target)
    if is_file(services, step.path, FileState.of(file)):
        if services.store.status(target) is None and _is_all_of(services, source, batch):
            services.store.rename_exclusive(source, target)
        elif services.store.status(step.target) is None:
            services.store.rename_exclusive(step.path, step.target)
        if batch.state is BatchState.PUBLISHED:
            write_manifest_anew(services, BatchPath.of(batch.plan).manifest)
        log.info("Moved %s back to %s.", step.path, step.target)
    return is_in_place(services, batch, file)


def _is_all_of(services: Services, directory: str, batch: CommittedBatch) -> bool:
    """True when readers find nothing in the directory but files of the batch."""
    try:
        names = {each.name for each in services.store.entries(directory) if is_read(each.name)}
    except FileMissing:
        return False
    return names <= {each.name for each in batch.manifest.files}
