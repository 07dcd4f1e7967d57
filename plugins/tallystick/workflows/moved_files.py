"""Committed files that somebody has moved: found by length and checksum, and moved back."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tallystick.domain.batch import CommittedFile
from tallystick.domain.findings import FindingCode
from tallystick.domain.identities import BatchId
from tallystick.domain.paths import BatchPath, StagingPath
from tallystick.domain.ranges import TopicPartition
from tallystick.domain.repair_plan import MovedFile
from tallystick.domain.replacing import rows_of_file
from tallystick.domain.runs import OffsetRuns
from tallystick.domain.states import BatchState
from tallystick.domain.storage_rules import is_read
from tallystick.domain.stray_rules import StrayFile
from tallystick.errors import FileMissing, IngestionError
from tallystick.ports.findings import StoredFinding
from tallystick.ports.ledger import CommittedBatch
from tallystick.ports.proofs import FileState
from tallystick.workflows.place import at
from tallystick.workflows.publishing import write_manifest_anew
from tallystick.workflows.readers_tree import asking, listed_tree
from tallystick.workflows.run import noted
from tallystick.workflows.services import Services
from tallystick.workflows.stray_check import look_at_strays

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MissingFiles:
    """What became of files that are not in their place."""

    elsewhere: Mapping[CommittedFile, MovedFile] = field(default_factory=dict)
    perhaps_at: Mapping[CommittedFile, str] = field(default_factory=dict)
    """Of which a stray may hold rows, each with the stray's path."""


def look_for(
    services: Services, batches: Iterable[CommittedBatch], missing: Collection[CommittedFile]
) -> MissingFiles:
    """Where missing files of these batches lie, or may lie; storage is listed only if any is."""
    lost = {
        CommittedFile(batch.plan.batch_id, file.name): (batch, file)
        for batch in batches
        for file in batch.manifest.files
        if file.slices and CommittedFile(batch.plan.batch_id, file.name) in missing
    }
    if not lost:
        return MissingFiles()
    directories = services.ledger.directories(services.feed_name)
    roots = {services.root, *(each.path.root for each in directories)}
    with asking() as pool:
        tree = listed_tree(services, sorted(f"{root}/{services.feed_name}" for root in roots), pool)
    states = {
        each: FileState(file.length_bytes, file.checksum, file.record_count)
        for each, (_, file) in lost.items()
    }
    look = look_at_strays(services, directories, tree, states)
    return MissingFiles(
        {
            each: MovedFile(path, f"{_place_of(lost[each][0])}/{each.name}")
            for each, path in look.elsewhere.items()
        },
        {
            each: stray.path
            for each, (batch, file) in lost.items()
            if each not in look.elsewhere
            for stray in _holding(
                look.strays, batch.plan.ordinal, rows_of_file(batch.manifest, file)
            )
        },
    )


def _place_of(batch: CommittedBatch) -> str:
    """Where the batch's files belong now."""
    if batch.state is BatchState.PUBLISHED:
        return str(BatchPath.of(batch.plan))
    return StagingPath.of(batch.plan, batch.attempt_id).data


def _holding(
    strays: Iterable[StrayFile], generation: int, rows: Mapping[TopicPartition, OffsetRuns]
) -> list[StrayFile]:
    wanted = {each.partition: offsets for each, offsets in rows.items()}
    return [each for each in strays if each.may_hold(generation, wanted)]


def moved_back(
    services: Services, standing: Sequence[StoredFinding], troubles: list[IngestionError]
) -> dict[int, str]:
    """Move files back that these findings miss; the findings that have ended by it.

    Whole directories in one step, where nothing of theirs is left in the old place.
    """
    asked: dict[CommittedFile, list[int]] = {}
    for each in standing:
        batch, name = (each.finding.evidence.get(key) for key in ("batch", "file"))
        if each.finding.code is FindingCode.PHANTOM_COMMIT and batch and name:
            file = CommittedFile(BatchId(str(batch)), str(name))
            asked.setdefault(file, []).append(each.finding_id)
    ids = sorted({each.batch_id for each in asked})
    batches = [batch for each in ids if (batch := services.ledger.committed_batch(each))]
    closed: dict[int, str] = {}
    for batch in batches:
        replaced = services.ledger.replacements(services.feed_name)
        gone = [
            each
            for each in asked
            if each.batch_id == batch.plan.batch_id
            and each not in replaced
            and services.store.status(f"{_place_of(batch)}/{each.name}") is None
        ]
        for file, moved in look_for(services, [batch], gone).elsewhere.items():
            with noted(troubles), at(services, "repair"):
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
