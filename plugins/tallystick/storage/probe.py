"""The question before a landing: can this root take one, and does its rename keep its promise."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, Protocol

from tallystick.domain.batches.paths import STAGING_NAME
from tallystick.errors import StorageError, StorageRefused, TargetOccupied

_CONTENT: Final = b"written to prove that a landing can be; safe to delete\n"


class Writable(Protocol):
    """The probe needs this of a store."""

    def write(self, path: str, content: bytes) -> None:
        """Write a whole small file."""
        ...

    def rename_exclusive(self, source: str, target: str) -> None:
        """Rename a directory, or raise TargetOccupied."""
        ...

    def delete(self, path: str) -> bool:
        """Delete the path and all below it."""
        ...


def prove_writable(store: Writable, root: str, shown_in: str, name: str) -> None:
    """Return if a small landing under another name went well: staged, renamed, deleted again.

    Writing a block shows what no figure does: permission, safe mode, both quotas of every directory
    above, a DataNode that takes it. It is shown where batches will be, for a directory may have a
    quota, an owner and a zone of encryption of its own. The rename onto a directory that is there
    must be refused: a gateway that ignores the option would put later batches inside each other.
    """
    staging = f"{root}/{STAGING_NAME}"
    staged, shown = f"{staging}/{name}", f"{shown_in}/{name}"
    try:
        store.write(f"{staged}/block", _CONTENT)
        try:
            store.rename_exclusive(staged, staging)
        except TargetOccupied:
            store.rename_exclusive(staged, shown)
        else:
            raise StorageRefused(staging, "a rename did not stop at a directory that exists")
    except StorageError:
        # Left-overs are hidden from readers; a second error would only hide the first one.
        with suppress(StorageError):
            store.delete(staged)
            store.delete(shown)
        raise
    store.delete(shown)
