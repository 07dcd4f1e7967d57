"""Storage that is away: what reads from it is told so."""

from __future__ import annotations

from typing import Any

from tallystick.errors import StorageUnavailable
from tallystick.ports.file_store import FileStore


class SilentStore:
    """Storage that answers no question about what readers see."""

    def __init__(self, store: FileStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name in ("entries", "status", "checksum", "read", "read_back"):
            return self._refuse
        return getattr(self._store, name)

    def _refuse(self, *_: object, **__: object) -> Any:
        raise StorageUnavailable("/landing", "no NameNode answers")
