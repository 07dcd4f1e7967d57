"""What lies at a path now, by length and checksum, or by its bytes; or why nobody can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from tallystick.domain.batches.landed import LandedFile
from tallystick.domain.batches.paths import directory_of
from tallystick.domain.batches.stored_file import StoredFile
from tallystick.domain.rules.n3_unfinished_batch import LostManifest
from tallystick.errors import FileMissing, ManifestMismatch, StorageError, StorageRefused
from tallystick.ledger.proofs import CommittedDirectory
from tallystick.workflows.services import Services


def stored_file(
    services: Services, path: str, length_bytes: int, committed: str
) -> StoredFile | None:
    """The file of this length beside its committed checksum; None if it is gone.

    One that can't be read for itself hides no other. Raises StorageUnavailable when nothing of the
    file system answers.
    """
    try:
        return StoredFile.beside(length_bytes, checksum_now(services, path, committed), committed)
    except FileMissing:
        return None
    except (StorageError, ManifestMismatch) as error:
        return StoredFile(length_bytes, None, _trouble(services, path, error))


def checksum_now(services: Services, path: str, committed: str) -> str:
    """The file's checksum; how it is coded is asked where this is not the committed one.

    Raises FileMissing, ManifestMismatch for an open file, StorageError.
    """
    told = services.store.checksum(path)
    if told == committed:
        return told
    entry = services.store.status(path)
    if entry is None:
        raise FileMissing(path)
    return entry.checksum(told)


def made_again(services: Services, path: str, found: StoredFile, committed: str) -> str | None:
    """The checksum of a file's bytes in the kind of the committed one; None for a kind that is not
    known, and for a file that was changed while it was read.

    Raises FileMissing, ManifestMismatch for an open file, StorageError.
    """
    made = services.store.checksum_like(path, found.length_bytes, committed)
    is_still = checksum_now(services, path, committed) == found.checksum
    return made if is_still else None


def lost_manifest(services: Services, directory: CommittedDirectory) -> LostManifest | str | None:
    """What became of a published directory's manifest, or why nobody can tell; None when it is the
    committed one, byte for byte. Raises StorageUnavailable when nothing of the file system answers.
    """
    path = directory.path.manifest
    try:
        found = services.store.read(path)
    except FileMissing:
        return LostManifest()
    except StorageError as error:
        return _trouble(services, path, error)
    digest = sha256(found)
    if digest.digest() in (directory.manifest_sha256, directory.account_sha256):
        return None
    return LostManifest(len(found), digest.hexdigest())


def _trouble(services: Services, path: str, error: StorageError | ManifestMismatch) -> str:
    """Why one file can't be read for itself; raises StorageUnavailable if none can."""
    services.store.status(directory_of(path))
    return error.sentence()


def stored_files(
    services: Services, directory: str, files: Sequence[LandedFile]
) -> Mapping[str, StoredFile]:
    """Those of a directory's files that are there, by name.

    Of a directory that may not be listed each is there, for all that is known, as it was committed,
    and none could be asked. Raises StorageUnavailable.
    """
    try:
        entries = {each.name: each for each in services.store.entries(directory)}
    except FileMissing:
        return {}
    except StorageRefused as error:
        unasked = error.sentence()
        return {each.name: StoredFile(each.length_bytes, None, unasked) for each in files}
    asked = {
        each.name: stored_file(
            services, f"{directory}/{each.name}", entries[each.name].length_bytes, each.checksum
        )
        for each in files
        if each.name in entries
    }
    return {name: each for name, each in asked.items() if each is not None}
