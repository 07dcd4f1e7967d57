"""What a stray file holds, and which of its rows the ledger and its files hold too."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from tallystick.domain.batches.batch import CommittedFile
from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.paths import BatchPath, StagingPath
from tallystick.domain.batches.replacing import rows_of_file
from tallystick.domain.batches.states import BatchState
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.batches.stray_file import StrayFile
from tallystick.domain.offsets.ranges import TopicPartition
from tallystick.domain.offsets.runs import OffsetRuns
from tallystick.errors import FileMissing, ManifestMismatch, StorageRefused
from tallystick.ledger.proofs import FileState
from tallystick.ledger.publishing import CommittedBatch
from tallystick.workflows.services import Services

_PARQUET: Final = b"PAR1"

IsKept = Callable[[CommittedBatch, LandedFile], bool | None]
"""True for a committed file that is in its place, as it was committed; None if nobody can tell."""


def stray_at(services: Services, path: str, is_kept: IsKept | None = None) -> StrayFile:
    """The stray, its offset columns read; without `is_kept` every committed file is asked for now.

    Raises StorageUnavailable.
    """
    stray = _read(services, path)
    held = stray.held
    if not held:
        return stray
    if stray.generation is None:
        return StrayFile(path, held, held, held) if _is_copy(services, path) else stray
    known: dict[int, OffsetRuns] = {}
    kept: dict[int, OffsetRuns] = {}
    replaced = services.ledger.replacements(services.feed_name)
    is_kept = is_kept or partial(is_in_place, services)
    unasked: list[str] = []
    for partition, offsets in held.items():
        known[partition] = _committed(services, stray.generation, partition, offsets)
        kept[partition] = _in_files(
            services, stray.generation, partition, known[partition], replaced, is_kept, unasked
        )
    trouble = f"{unasked[0]} could not be asked." if unasked else None
    return StrayFile(path, held, known, kept, trouble)


def is_news_to_ledger(services: Services, path: str) -> bool:
    """True for a file with rows, or what may be rows, that the ledger has not committed."""
    stray = _read(services, path)
    held, generation = stray.held, stray.generation
    if not held or generation is None:
        return held is None or bool(held)
    return any(
        offsets.difference(_committed(services, generation, partition, offsets))
        for partition, offsets in held.items()
    )


def is_in_place(services: Services, batch: CommittedBatch, file: LandedFile) -> bool:
    """True when the file lies where its batch is, with the length and checksum of the commit."""
    target = str(BatchPath.of(batch.plan))
    # Data move from staging to the target, never back: looked at in this order.
    staging = StagingPath.of(batch.plan, batch.attempt_id).data
    places = (target,) if batch.state is BatchState.PUBLISHED else (staging, target)
    state = FileState.of(file)
    return any(is_file(services, f"{each}/{file.name}", state) for each in places)


def is_file(services: Services, path: str, file: FileState) -> bool:
    """True when this very file lies at the path; False where nobody can tell."""
    try:
        found = services.store.status(path)
        if found is None or found.length_bytes != file.length_bytes:
            return False
        told = found.checksum(services.store.checksum(path))
        return StoredFile.beside(file.length_bytes, told, file.checksum).checksum == file.checksum
    except (FileMissing, ManifestMismatch, StorageRefused):
        return False


def _read(services: Services, path: str) -> StrayFile:
    """With the offsets that have a row in the file; none in what is no Parquet file."""
    directory, _, name = path.rpartition("/")
    try:
        return StrayFile(path, services.store.read_back_file(directory, name).landed)
    except FileMissing:
        return StrayFile(path, {})
    except StorageRefused as error:
        return StrayFile(path, None, trouble=error.sentence())
    except ManifestMismatch:
        return StrayFile(path, None if _is_parquet(services, path) else {})


def _is_parquet(services: Services, path: str) -> bool:
    try:
        found = services.store.status(path)
        if found is None or found.length_bytes < len(_PARQUET):
            return False
        return services.store.read_range(path, 0, len(_PARQUET)) == _PARQUET
    except FileMissing:
        return False
    except StorageRefused:
        return True


def _is_copy(services: Services, path: str) -> bool:
    """True for the bytes of a committed file that is in its place."""
    found = services.store.status(path)
    if found is None:
        return False
    for directory in services.ledger.directories(services.feed_name):
        for name, file in directory.files.items():
            if file.length_bytes == found.length_bytes and is_file(services, path, file):
                return is_file(services, f"{directory.path}/{name}", file)
    return False


def _committed(
    services: Services, generation: int, partition: int, offsets: OffsetRuns
) -> OffsetRuns:
    if not offsets:
        return offsets
    first, until = offsets.from_offsets[0], offsets.until_offsets[-1]
    known = services.ledger.committed_within(
        services.feed_name, generation, partition, first, until
    )
    return offsets.intersection(known)


def _in_files(
    services: Services,
    generation: int,
    partition: int,
    offsets: OffsetRuns,
    replaced: Collection[CommittedFile],
    is_kept: IsKept,
    unasked: list[str],
) -> OffsetRuns:
    """Which of the offsets have a row in a committed file that is kept; `unasked` are the names of
    those of which nobody can tell.
    """
    if not offsets:
        return offsets
    first, until = offsets.from_offsets[0], offsets.until_offsets[-1]
    runs: list[tuple[int, int]] = []
    for batch_id in services.ledger.batches_holding(
        services.feed_name, generation, partition, first, until
    ):
        batch = services.ledger.committed_batch(batch_id)
        for file in batch.manifest.files if batch else ():
            if CommittedFile(batch_id, file.name) in replaced:
                continue
            meets = any(each.meets(partition, first, until) for each in file.slices)
            is_there = is_kept(batch, file) if batch and meets else False
            if is_there is None:
                unasked.append(file.name)
            elif batch and is_there:
                place = TopicPartition(batch.plan.topic, partition)
                runs += rows_of_file(batch.manifest, file)[place]
    return offsets.intersection(OffsetRuns.of(runs))
