"""Reads what published directories say of themselves, and proves it from their files.

A file that a batch lacks is excused by the repair that replaced it, if that is proven itself: so
the newest repairs come first.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tallystick.domain.batches.batch import BatchPlan
from tallystick.domain.batches.directory_proof import DirectoryLook, DirectoryProof, proof_of
from tallystick.domain.batches.manifest import Manifest
from tallystick.domain.batches.paths import MANIFEST_NAME, BatchPath
from tallystick.domain.identities import BatchId
from tallystick.domain.rebuilding.deciding import in_order
from tallystick.domain.rebuilding.plan import LeftOut, PublishedBatch
from tallystick.errors import FileMissing, ManifestMismatch
from tallystick.ports.file_store import StoredEntry
from tallystick.workflows.place import counted
from tallystick.workflows.services import Services

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PublishedManifests:
    """What the manifests of some directories say, and what their files prove."""

    batches: Mapping[BatchId, PublishedBatch]
    proofs: Mapping[BatchId, DirectoryProof]
    left_out: Sequence[LeftOut] = field(default=())
    """Directories without a manifest that can be used."""

    @property
    def plans(self) -> list[BatchPlan]:
        """Of every batch whose manifest could be read."""
        return [each.plan for each in self.batches.values()]

    @property
    def proven(self) -> list[PublishedBatch]:
        """Those whose every offset is there."""
        return [each for key, each in self.batches.items() if self.proofs[key].is_proven]

    def with_bare(
        self,
        services: Services,
        bare: Mapping[BatchId, PublishedBatch],
        proofs: Mapping[BatchId, DirectoryProof],
    ) -> PublishedManifests:
        """The same, with batches whose manifests were made from their files."""
        batches, proven = {**self.batches, **bare}, {**self.proofs, **proofs}
        proven |= _excused(services, [each.plan for each in batches.values()], proven)
        return PublishedManifests(batches, proven, self.left_out)


def read_manifests(services: Services, paths: Sequence[BatchPath]) -> PublishedManifests:
    """What the directories' manifests say, each proven from its files."""
    batches: dict[BatchId, PublishedBatch] = {}
    proofs: dict[BatchId, DirectoryProof] = {}
    left_out: list[LeftOut] = []
    for number, path in enumerate(counted(services, "read back", "directories", paths), start=1):
        found = manifest_at(services, path)
        if isinstance(found, str):
            left_out.append(LeftOut(str(path), path.batch_id, (found,)))
        elif path.batch_id in batches:
            other = BatchPath.of(batches[path.batch_id].plan)
            left_out.append(LeftOut(str(path), path.batch_id, (f"{other} is the same batch",)))
        else:
            batches[path.batch_id] = PublishedBatch.of(found)
            proofs[path.batch_id] = proof_of(found, (), directory_look(services, str(path)))
        log.info("Read back %d of %d: %s.", number, len(paths), path)
    proofs |= _excused(services, [each.plan for each in batches.values()], proofs)
    return PublishedManifests(batches, proofs, left_out)


def _excused(
    services: Services, plans: Sequence[BatchPlan], proofs: Mapping[BatchId, DirectoryProof]
) -> dict[BatchId, DirectoryProof]:
    """The proofs of batches that lack what proven repairs have replaced, without these files."""
    gone: dict[BatchId, set[str]] = {}
    again: dict[BatchId, DirectoryProof] = {}
    for plan in reversed(in_order(plans)):
        proof = proofs[plan.batch_id]
        if plan.batch_id in gone and not proof.is_proven:
            path = BatchPath.of(plan)
            manifest = manifest_at(services, path)
            if isinstance(manifest, Manifest):
                proof = proof_of(manifest, gone[plan.batch_id], directory_look(services, str(path)))
                again[plan.batch_id] = proof
        for each in plan.replaces if proof.is_proven else ():
            gone.setdefault(each.batch_id, set()).add(each.name)
    return again


def manifest_at(services: Services, path: BatchPath) -> Manifest | str:
    """The directory's manifest, or why it can't be used."""
    try:
        manifest = Manifest.from_json(services.store.read(path.manifest).decode())
    except (FileMissing, ValueError) as error:
        return f"its {MANIFEST_NAME} can't be read: {error}"
    plan = manifest.plan
    if BatchPath.of(plan) != path:
        return f"its {MANIFEST_NAME} says that the batch lies in {BatchPath.of(plan)}"
    if plan.topic != services.topic:
        return f"its {MANIFEST_NAME} is of topic {plan.topic}, the feed's is {services.topic}"
    return manifest


def directory_look(services: Services, directory: str) -> DirectoryLook:
    """What a directory holds; raises FileMissing."""
    entries = [each for each in services.store.entries(directory) if each.is_read]
    lengths = {each.name: each.length_bytes for each in entries}
    try:
        found = services.store.read_back(directory)
    except ManifestMismatch as error:
        log.warning("%s", error)
        files = [each for each in entries if not each.is_directory]
        return DirectoryLook(lengths, _checksums(services, directory, files), None)
    return DirectoryLook(lengths, {each.name: each.checksum for each in found.files}, found)


def _checksums(services: Services, directory: str, files: Sequence[StoredEntry]) -> dict[str, str]:
    found = {}
    for each in files:
        try:
            told = services.store.checksum(f"{directory}/{each.name}")
            found[each.name] = each.checksum(told)
        except (FileMissing, ManifestMismatch) as error:
            log.warning("%s", error)
    return found
