"""Level L2: lists what readers see, and compares it with what the ledger committed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tallystick.domain.findings import Finding
from tallystick.domain.identities import BatchId
from tallystick.domain.landed import LandedFile
from tallystick.domain.manifest import Manifest
from tallystick.domain.paths import MANIFEST_NAME, BatchPath
from tallystick.domain.storage_rules import (
    StoredFile,
    ledger_behind,
    missing_or_changed,
    stray_files,
)
from tallystick.errors import FileMissing
from tallystick.ports.file_store import StoredEntry
from tallystick.workflows.services import Services


def storage_findings(
    services: Services, manifests: Sequence[Manifest], unpublished: Collection[BatchId]
) -> list[Finding]:
    """Missing, changed and foreign files, and batches that the ledger has never heard of.

    A batch that is committed and not published yet is left out: the finisher looks after it.
    """
    found: list[Finding] = []
    owned: set[str] = set()
    for manifest in manifests:
        directory = str(BatchPath.of(manifest.plan))
        owned.add(directory)
        if manifest.plan.batch_id not in unpublished:
            found += missing_or_changed(manifest, directory, _stored(services, manifest, directory))
    strays: list[str] = []
    behind: list[str] = []
    by_directory = {
        str(BatchPath.of(each.plan)): {file.name for file in each.files} for each in manifests
    }
    for directory, entry in _readable_files(services, f"{services.root}/{services.feed_name}"):
        names = by_directory.get(directory)
        if names is not None and entry.name in names:
            continue
        if names is None and _is_published_batch(services, directory):
            behind.append(directory)
        else:
            strays.append(f"{directory}/{entry.name}")
    found += stray_files(services.feed_name, services.topic, strays)
    found += ledger_behind(services.feed_name, services.topic, sorted(set(behind)))
    return found


def _stored(services: Services, manifest: Manifest, directory: str) -> dict[str, StoredFile]:
    try:
        lengths = {
            each.name: each.length_bytes
            for each in services.store.entries(directory)
            if not each.is_directory
        }
    except FileMissing:
        return {}
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


def _readable_files(services: Services, top: str) -> Iterator[tuple[str, StoredEntry]]:
    """Directory and entry of every file below `top` that Spark and Hive would read.

    They skip names that begin with `.`, or with `_` unless it holds a `=` (a partition column).
    """
    waiting = [top]
    while waiting:
        directory = waiting.pop()
        try:
            entries = services.store.entries(directory)
        except FileMissing:
            continue
        for entry in entries:
            if entry.name.startswith(".") or (entry.name.startswith("_") and "=" not in entry.name):
                continue
            if entry.is_directory:
                waiting.append(f"{directory}/{entry.name}")
            else:
                yield directory, entry


def _is_published_batch(services: Services, directory: str) -> bool:
    """True for a directory of ours that holds a manifest."""
    try:
        BatchPath.parse(directory)
    except ValueError:
        return False
    return services.store.status(f"{directory}/{MANIFEST_NAME}") is not None
