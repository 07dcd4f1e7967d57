"""What lies in the staging directories of attempts, whoever made them. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from tallystick.domain.batches.batch import BatchStatus
from tallystick.domain.batches.directory_proof import proof_of
from tallystick.domain.batches.landing import LandingPlan
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import (
    MANIFEST_NAME,
    PLAN_NAME,
    STAGING_NAME,
    StagingPath,
    given_up_at,
    quarantine_of_attempts,
)
from tallystick.domain.batches.states import RangeState
from tallystick.domain.identities import ID_PATTERN, AttemptId, BatchId
from tallystick.errors import BatchUnknown, FileMissing, StorageError
from tallystick.ports.file_store import StoredEntry
from tallystick.workflows.services import Services
from tallystick.workflows.stored.published_manifests import directory_look

# Where Spark's committer keeps what is not shown yet: gone when the application has ended well.
_UNFINISHED = "_temporary"
_BATCH = "batch="


def known_batch(services: Services, batch_id: BatchId) -> BatchStatus | None:
    """The batch as it stands; None for one that this ledger has never heard of."""
    try:
        return services.ledger.batch(batch_id)
    except BatchUnknown:
        return None


def batches_in_staging(services: Services, root: str) -> list[BatchId]:
    """The batches that have a staging directory there, also those that this ledger never saw."""
    try:
        entries = services.store.entries(f"{root}/{STAGING_NAME}")
    except FileMissing:
        return []
    return batches_among(entries)


def batches_among(entries: Iterable[StoredEntry]) -> list[BatchId]:
    """The batches whose directories these entries of a staging directory are."""
    return [BatchId(each.name) for each in entries if ID_PATTERN.fullmatch(each.name)]


def attempts_in(services: Services, root: str, batch_id: BatchId) -> list[StagingPath]:
    """The directories of the batch's attempts, also of those that this ledger never saw, sorted."""
    try:
        entries = services.store.entries(f"{root}/{STAGING_NAME}/{batch_id}")
    except FileMissing:
        return []
    names = [each.name for each in entries if ID_PATTERN.fullmatch(each.name)]
    return [StagingPath(root, batch_id, AttemptId(each)) for each in names]


def holds_rows(services: Services, staging: StagingPath) -> bool:
    """True when a file lies there that may hold a row, finished or not.

    HDFS tells no length of a file that is still being written, before its first block is full. So
    an application that has not finished may hold rows, whatever its files seem to have.
    """
    return is_unfinished(services, staging) or any(_files_with_rows(services, staging.data))


def _files_with_rows(services: Services, directory: str) -> Iterator[str]:
    try:
        entries = services.store.entries(directory)
    except FileMissing:
        return
    for each in entries:
        path = f"{directory}/{each.name}"
        if each.is_directory:
            yield from _files_with_rows(services, path)
        elif each.length_bytes and each.name != MANIFEST_NAME:
            yield path


def is_whole(services: Services, staging: StagingPath) -> bool:
    """True when the attempt's application has ended well: nothing of its data is unfinished."""
    try:
        names = [each.name for each in services.store.entries(staging.data)]
    except FileMissing:
        return False
    return _UNFINISHED not in names and any(each != MANIFEST_NAME for each in names)


def is_unfinished(services: Services, staging: StagingPath) -> bool:
    """True when the attempt's application is writing, or has died at it."""
    try:
        return any(each.name == _UNFINISHED for each in services.store.entries(staging.data))
    except FileMissing:
        return False


def landing_plan(services: Services, staging: StagingPath) -> LandingPlan | None:
    """What the attempt's application was given; None where there is none that can be read."""
    return _plan_at(services, staging.plan)


def _plan_at(services: Services, path: str) -> LandingPlan | None:
    try:
        return LandingPlan.from_json(services.store.read(path).decode())
    except (FileMissing, ValueError, KeyError, TypeError):
        return None


def epochs_of(services: Services, staging: StagingPath) -> Mapping[int, int | None]:
    """By partition, the leader epochs just before the attempt read; empty when nobody knows."""
    plan = landing_plan(services, staging)
    return plan.leader_epochs if plan else {}


def proven_manifest(services: Services, staging: StagingPath) -> Manifest | None:
    """The proof that lies beside the attempt's files, if these are exactly as it says.

    A manifest is written only after its files were proven, so it is as good for a commit as it was
    then, if nothing else holds the offsets. It is told as of the batch in whose directory it lies:
    the files may have been given to that one since.
    """
    try:
        manifest = Manifest.from_json(services.store.read(staging.manifest).decode())
    except (FileMissing, ValueError):
        return None
    plan = manifest.plan
    known = (plan.feed, plan.topic, plan.root)
    if known != (services.feed_name, services.topic, staging.root):
        return None
    proof = proof_of(manifest, (), directory_look(services, staging.data))
    # What is renamed must be as it was committed: length and checksum, and no file beside.
    if not proof.is_proven or proof.notes:
        return None
    return replace(manifest, plan=replace(plan, batch_id=staging.batch_id))


def quarantined_at(services: Services, staging: StagingPath) -> str:
    """Where an attempt's directory is kept when nobody will land its offsets again."""
    return str(given_up_at(str(staging), services.feed_name))


def batch_quarantined_at(services: Services, root: str, batch_id: BatchId) -> str:
    """The directory of all such attempts of a batch."""
    return str(given_up_at(f"{root}/{STAGING_NAME}/{batch_id}", services.feed_name))


def unproven_in(
    services: Services, root: str
) -> Iterator[tuple[str, BatchId | None, LandingPlan | None]]:
    """What was quarantined there: each attempt's directory, its batch, and what it was told.

    Where that can't be read it is None, and a directory that can't be listed stands for all in it:
    it was quarantined because nobody could, and no place where files are only kept stops a look.
    Quarantine only grows: a batch whose every offset at risk is on record as lost is passed over.
    """
    unproven = quarantine_of_attempts(root, services.feed_name)
    try:
        batches = _directories(services, unproven)
    except StorageError:
        yield unproven, None, None
        return
    over = _batches_told(services, [BatchId(each.removeprefix(_BATCH)) for each in batches])
    for batch in batches:
        batch_id = BatchId(batch.removeprefix(_BATCH))
        if batch_id in over:
            continue
        try:
            attempts = _directories(services, f"{unproven}/{batch}")
        except StorageError:
            yield f"{unproven}/{batch}", batch_id, None
            continue
        for attempt in attempts:
            place = f"{unproven}/{batch}/{attempt}"
            landing = None
            with suppress(StorageError):
                landing = _plan_at(services, f"{place}/{PLAN_NAME}")
            yield place, batch_id, landing


def _batches_told(services: Services, batch_ids: Sequence[BatchId]) -> set[BatchId]:
    """Those that are over, and of which all that no commit holds is on record as lost."""
    if not batch_ids:
        return set()
    over = services.ledger.batches_over(services.feed_name, batch_ids)
    at_risk = services.ledger.offsets_at_risk(over) if over else {}
    return {
        batch_id
        for batch_id in over
        if (left := at_risk.get(batch_id)) and all(each.state is RangeState.LOST for each in left)
    }


def _directories(services: Services, path: str) -> list[str]:
    try:
        return [each.name for each in services.store.entries(path) if each.is_directory]
    except FileMissing:
        return []
