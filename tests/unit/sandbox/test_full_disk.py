"""A full disk is told of before a service meets it."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from sandbox.errors import SandboxError
from sandbox.stack import LEAST_FREE_BYTES, require_free_disk


def _with_free(free: int, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = SimpleNamespace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)


def test_nothing_is_started_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_free(LEAST_FREE_BYTES - 1, monkeypatch)
    with pytest.raises(SandboxError, match=r"2\.0 GB are free.*TALLYSTICK_SANDBOX_DIR"):
        require_free_disk(tmp_path)


def test_a_disk_with_just_enough_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _with_free(LEAST_FREE_BYTES, monkeypatch)
    require_free_disk(tmp_path)
