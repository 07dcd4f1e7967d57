"""The jars that a POM brings, by name and SHA-256: ``jars.sha256`` beside it.

Maven checks what it fetches against the repository's own word alone; this is ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from sandbox.entry.layout import POMS


def list_of(service: str) -> Path:
    """Where a service's list lies, in the format of sha256sum."""
    return POMS / service / "jars.sha256"


def listed_jars(service: str) -> dict[str, str]:
    """The jars of a service: a file's name to its SHA-256."""
    lines = [line.split() for line in list_of(service).read_text().splitlines()]
    return {name: sha256 for sha256, name in lines}


def differences_in(folder: Path, listed: Mapping[str, str]) -> list[str]:
    """What makes the folder's files others than the listed ones, file by file; empty if nothing."""
    found = {each.name: _sha256_of(each) for each in folder.iterdir()}
    both = sorted(name for name in found.keys() & listed.keys() if found[name] != listed[name])
    altered = [f"{name} has SHA-256 {found[name]}, not {listed[name]}" for name in both]
    missing = [f"{name} is missing" for name in sorted(listed.keys() - found.keys())]
    strange = [f"{name} is not in the list" for name in sorted(found.keys() - listed.keys())]
    return [*altered, *missing, *strange]


def _sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
