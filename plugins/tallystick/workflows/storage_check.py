"""Level L2: lists what readers see, and compares it with what the ledger committed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from tallystick.domain.findings import Finding
from tallystick.domain.identities import BatchId
from tallystick.domain.landed import LandedFile
from tallystick.domain.manifest import Manifest
from tallystick.domain.paths import MANIFEST_NAME, BatchPath, StagingPath
from tallystick.domain.storage_rules import (
    StoredFile,
    is_read,
    ledger_behind,
    missing_or_changed,
    stray_files,
)
from tallystick.errors import FileMissing
from tallystick.workflows.services import Services


def storage_findings(
    services: Services, manifests: Sequence[Manifest], unpublished: Collection[BatchId]
) -> list[Finding]:
    """Missing, changed and foreign files, and batches that the ledger has never heard of.

    A batch that is committed and not published yet may lie at its target or still in staging.
    """
    found: list[Finding] = []
    for manifest in manifests:
        is_published = manifest.plan.batch_id not in unpublished
        found += _missing_or_changed(services, manifest, is_published=is_published)
    strays: list[str] = []
    behind: list[str] = []
    owned = {str(BatchPath.of(each.plan)): _names(each) for each in manifests}
    roots = {services.root, *(each.plan.root for each in manifests)}
    for root in sorted(roots):
        for directory, names in _read_directories(services, f"{root}/{services.feed_name}"):
            if directory in owned and owned[directory].issuperset(names):
                continue
            known = _names_in_ledger(services, directory)
            if known is None and _is_published_batch(services, directory):
                behind.append(directory)
            else:
                strays += [f"{directory}/{each}" for each in names if each not in (known or ())]
    found += stray_files(services.feed_name, services.topic, strays)
    found += ledger_behind(services.feed_name, services.topic, behind)
    return found


def _missing_or_changed(
    services: Services, manifest: Manifest, *, is_published: bool
) -> Sequence[Finding]:
    """What is wrong with a batch, where most of it lies now.

    The rename may come between two looks, so the target is looked at again after staging. A
    published batch is looked at twice too: a file may go between its listing and its checksum.
    """
    target = str(BatchPath.of(manifest.plan))
    staging = StagingPath.of(manifest.plan, manifest.attempt.attempt_id).data
    most, found = -1, list[Finding]()
    for place in (target, target) if is_published else (target, staging, target):
        try:
            stored = _stored(services, manifest, place)
        except FileMissing:
            stored = {}
        answer = list(missing_or_changed(manifest, place, stored))
        if not answer:
            return ()
        if len(stored) > most:
            most, found = len(stored), answer
    return found


def _stored(services: Services, manifest: Manifest, directory: str) -> Mapping[str, StoredFile]:
    lengths = {
        each.name: each.length_bytes
        for each in services.store.entries(directory)
        if not each.is_directory
    }
    return {
        file.name: StoredFile(
            lengths[file.name], _checksum(services, directory, file, lengths[file.name])
        )
        for file in manifest.files
        if file.name in lengths
    }


def _checksum(services: Services, directory: str, file: LandedFile, length: int) -> str | None:
    """The file's checksum now; not asked for where the length differs already."""
    if length != file.length_bytes:
        return None
    return services.store.checksum(f"{directory}/{file.name}")


def _read_directories(services: Services, top: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Every directory below `top` with the names of the files that Spark and Hive would read."""
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        try:
            entries = services.store.entries(directory)
        except FileMissing:
            continue
        read = [each for each in entries if is_read(each.name)]
        waiting += [f"{directory}/{each.name}" for each in read if each.is_directory]
        yield directory, [each.name for each in read if not each.is_directory]


def _names(manifest: Manifest) -> frozenset[str]:
    return frozenset(each.name for each in manifest.files)


def _names_in_ledger(services: Services, directory: str) -> frozenset[str] | None:
    """The files that a batch of the ledger has in this directory; None if it knows no such batch.

    Asked for now: since the ledger was read, a batch may have been committed and published, and the
    ledger knows of each batch before readers do.
    """
    try:
        batch_id = BatchPath.parse(directory).batch_id
    except ValueError:
        return None
    batch = services.ledger.committed_batch(batch_id)
    if batch is None:
        return None
    is_here = str(BatchPath.of(batch.plan)) == directory
    return _names(batch.manifest) if is_here else frozenset()


def _is_published_batch(services: Services, directory: str) -> bool:
    """True for a directory of ours that holds a manifest."""
    try:
        BatchPath.parse(directory)
    except ValueError:
        return False
    return services.store.status(f"{directory}/{MANIFEST_NAME}") is not None
