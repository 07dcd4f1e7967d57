"""A file system that does not answer one question about one file."""

from __future__ import annotations

from typing import Any

import pytest

from tallystick.errors import StorageRefused
from tests.support.local_directory import LocalFileStore


def refuse(monkeypatch: pytest.MonkeyPatch, verb: str, name: str) -> None:
    """From now on the file system does not answer this for this file."""
    really = getattr(LocalFileStore, verb)

    def refused(store: LocalFileStore, path: str, *rest: Any) -> Any:
        if name in (path.rpartition("/")[2], *rest):
            raise StorageRefused(path, "Could not obtain block (DataNode is down)")
        return really(store, path, *rest)

    monkeypatch.setattr(LocalFileStore, verb, refused)
