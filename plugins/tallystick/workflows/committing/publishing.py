"""Publish and finish: what comes after the commit, repeatable by anybody at any time.

1. A rename never overwrites and never nests; a foreign directory or file stops the story.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256

from tallystick.domain.batches.manifest_texts import whole_text
from tallystick.domain.batches.paths import BatchPath, StagingPath, directory_of
from tallystick.domain.batches.states import BatchState
from tallystick.domain.batches.stored_file import unlike_manifest
from tallystick.domain.identities import BatchId, Owner
from tallystick.domain.rules.n3_unfinished_batch import not_shown, refused_by_storage
from tallystick.errors import (
    FileMissing,
    IngestionError,
    ManifestMismatch,
    PublishedDataMissing,
    StorageRefused,
    TargetOccupied,
)
from tallystick.ledger.publishing import CommittedBatch
from tallystick.workflows.committing.retiring import retire_replaced
from tallystick.workflows.place import at
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


def publish(services: Services, batch_id: BatchId, owner: Owner | None = None) -> str | None:
    """The directory in which readers find the batch, from now on at the latest; None before the
    commit, and for a batch that was given up.

    `owner` is the run that has published it from then on.

    Raises TargetOccupied, ManifestMismatch or PublishedDataMissing.
    """
    with at(services, "publish", batch_id):
        batch = services.ledger.committed_batch(batch_id)
    if batch is None:
        return None
    target = BatchPath.of(batch.plan)
    if batch.state is not BatchState.PUBLISHED:
        with at(services, "publish", batch.plan), _told_if_not_shown(services, batch_id):
            retire_replaced(services, batch.plan)
            _move(services, batch, target)
            services.ledger.mark_published(batch_id, owner)
        log.info("Batch %s is published: %s", batch_id, target)
        # Readers wait for nothing that is only shown: a silent coordinator takes its time.
        show_frontiers(services)
    return str(target)


@contextmanager
def _told_if_not_shown(services: Services, batch_id: BatchId) -> Iterator[None]:
    """What no further try will mend by itself is on record at once, for all who ask the ledger."""
    try:
        yield
    except IngestionError as error:
        if not error.retry:
            feed, topic = services.feed_name, services.topic
            refused = isinstance(error, StorageRefused)
            told = not_shown(feed, topic, batch_id, error.sentence(), is_refused=refused)
            services.ledger.record_findings(feed, [told])
        raise


def refused_publishes(services: Services) -> list[BatchId]:
    """What the storage has refused to show: before it is shown, a run reads nothing more."""
    standing = services.ledger.findings(services.feed_name)
    return refused_by_storage(each.finding for each in standing)


def _move(services: Services, batch: CommittedBatch, target: BatchPath) -> None:
    """Bring the data to its target once, whoever did it.

    Data moves from staging to the target, never back: whoever looks at them in this order misses
    nothing. What lies in staging while the target is there counts for nothing: a late writer of
    this very attempt makes directories again after they were renamed.
    """
    staging = StagingPath.of(batch.plan, batch.attempt_id)
    trouble: TargetOccupied | FileMissing | ManifestMismatch | None = None
    if all(each.name in batch.replaced for each in batch.manifest.files if each.slices):
        # Without a row there is nothing to be missing but the manifest, and the ledger has that.
        _complete_manifest(services, batch, staging.manifest)
    try:
        _require_as_committed(services, batch, staging.data)
        _complete_manifest(services, batch, staging.manifest)
        services.store.take_rights(staging.data, target.feed_directory)
        services.store.rename_exclusive(staging.data, str(target))
    except (TargetOccupied, FileMissing, ManifestMismatch) as error:
        trouble = error
    if trouble and services.store.status(str(target)) is None:
        if isinstance(trouble, FileMissing):
            raise PublishedDataMissing(batch.plan.batch_id, staging.data, str(target)) from trouble
        raise trouble
    try:
        _require_as_committed(services, batch, str(target))
    except ManifestMismatch:
        if isinstance(trouble, TargetOccupied) and services.store.status(staging.data):
            raise trouble from None
        raise
    _complete_manifest(services, batch, target.manifest)


def _require_as_committed(services: Services, batch: CommittedBatch, directory: str) -> None:
    """The directory holds the committed files by name and length, and no other that is read.

    Raises ManifestMismatch with the first one that differs, FileMissing without the directory.
    """
    entries = services.store.entries(directory)
    stored = {each.name: each.length_bytes for each in entries if each.is_read}
    unlike = unlike_manifest(batch.manifest, stored, batch.replaced)
    if unlike:
        raise ManifestMismatch(f"{directory}/{unlike.name}", unlike.expected, unlike.found)


def _complete_manifest(services: Services, batch: CommittedBatch, path: str) -> None:
    """The directory's account of itself is the committed one, byte for byte, from here on.

    Another verification of the same attempt may have written one that differs in its evidence, or
    died while it wrote. The ledger has the text that was proven, and of an old batch all but the
    hashes of last rows: the files have these rows, unless a repair has taken their place.
    """
    try:
        found = sha256(services.store.read(path)).digest()
    except FileMissing:
        found = b""
    text = batch.manifest_text
    accepted = [batch.manifest_sha256]
    if text is None:
        accepted.append(sha256(batch.account.encode()).digest())
    if found not in accepted:
        log.warning("%s is not the committed manifest: it is written anew from the ledger.", path)
        text = text or _text_with_rows(services, batch, directory_of(path))
        services.store.write(path, text.encode())


def _text_with_rows(services: Services, batch: CommittedBatch, directory: str) -> str:
    """The very text that was proven, from what the ledger kept of it and the last rows; without
    hashes where a row is in no file of the batch any more.

    Raises FileMissing or ManifestMismatch where a row is not there as it was.
    """
    files = {
        (each.partition, each.last_offset): file.name
        for file in batch.manifest.files
        for each in file.slices
    }
    names = [(files[place], *place) for place in batch.manifest.unhashed.items()]
    if {name for name, _, _ in names} & batch.replaced:
        return batch.account
    hashes = [services.store.landed_record_hash(directory, *each).hex() for each in names]
    try:
        return whole_text(batch.account, hashes)
    except ValueError as error:
        path = BatchPath.of(batch.plan).manifest
        raise ManifestMismatch(path, "the last rows that were committed", "others") from error


def write_manifest_anew(services: Services, path: str) -> bool:
    """Have the committed manifest in a published directory again; False where there is none to
    write: where the ledger has no batch there, or the directory is gone with files of it.
    """
    directory = directory_of(path)
    batch = services.ledger.committed_batch(BatchPath.parse(directory).batch_id)
    if batch is None or BatchPath.of(batch.plan).manifest != path:
        return False
    has_files = any(
        each.slices and each.name not in batch.replaced for each in batch.manifest.files
    )
    if has_files and services.store.status(directory) is None:
        return False
    _complete_manifest(services, batch, path)
    return True


def finish(services: Services, owner: Owner | None = None) -> Sequence[str]:
    """Roll forward every batch that is committed and not published; the directories.

    `owner` as in `publish`.

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
            if directory := publish(services, batch.plan.batch_id, owner):
                finished.append(directory)
        except IngestionError as error:
            if error.retry:
                raise
            if first:
                log.error("%s", error)
            first = first or error
    if first:
        raise first
    return finished


def show_frontiers(services: Services) -> None:
    """Commit what the ledger has to the group of `source.export_group`, if the feed names one.

    A failure is a warning: the ledger alone says what is landed, and the next batch shows it.
    """
    if services.frontier_group is None:
        return
    try:
        logs = services.ledger.newest_logs(services.feed_name)
        frontiers = {each.partition: each.frontier for each in logs if each.state == "open"}
        if frontiers:
            services.frontier_group.show(services.feed.name, services.topic, frontiers)
    except IngestionError as error:
        log.warning(
            "Feed %s: the group %s does not show what is landed: %s",
            services.feed.name,
            services.feed.source.export_group,
            error.describe(),
        )
